// The conformance suite as a program: every rank that a launcher starts runs all cases over the group that init()
// gives. Rank 0 says what it did; the exit code is 0 only when every case passed on this rank.

#include <cstdio>
#include <cstring>

#include "tests/conformance/suite.h"
#include <tutti/tutti.h>

int main(int argc, char** argv) {
  try {
    const auto world = tutti::init();
    if (argc == 3 && std::strcmp(argv[1], "--engine") == 0 && world.group().engine() != argv[2]) {
      std::fprintf(stderr, "the engine is %s, not %s\n", world.group().engine().c_str(), argv[2]);
      return 1;
    }
    int failed = 0;
    for (const auto& one : tutti::conformance::cases()) {
      try {
        one.run(world.group());
      } catch (const std::exception& error) {
        ++failed;
        std::fprintf(stderr, "%s: %s\n", one.name, error.what());
      }
    }
    if (world.rank() == tutti::Rank{0}) {
      std::printf("%zu cases, %d failed, %d ranks, engine %s, started by %s\n", tutti::conformance::cases().size(),
                  failed, world.size(), world.group().engine().c_str(),
                  std::string(tutti::to_string(world.launcher())).c_str());
    }
    return failed == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
