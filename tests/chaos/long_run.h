#pragma once

#include <cstdlib>
#include <string>

namespace tutti::chaos {

/// How often to do something: a few times among the other tests, often in `make soak`, which sets TUTTI_SOAK.
inline int times(int few, int many) { return std::getenv("TUTTI_SOAK") != nullptr ? many : few; }

/// Another seed each time is found by another run: TUTTI_SEED=N repeats one.
inline unsigned seed() {
  const char* text = std::getenv("TUTTI_SEED");
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 1U;
}

}  // namespace tutti::chaos
