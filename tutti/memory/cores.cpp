#include "tutti/memory/cores.h"

#include <sched.h>

#include <bit>
#include <cstring>
#include <iterator>

namespace tutti::memory {

int Cores::count() const {
  int sum = 0;
  for (const auto word : bits) {
    sum += std::popcount(word);
  }
  return sum;
}

Cores& Cores::operator|=(const Cores& other) {
  for (std::size_t i = 0; i < std::size(bits); ++i) {
    bits[i] |= other.bits[i];
  }
  return *this;
}

Cores Cores::allowed() {
  static_assert(sizeof(cpu_set_t) == sizeof bits);
  Cores cores;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    std::memcpy(cores.bits, &set, sizeof set);
  } else {  // a machine with more cores than fit: enough
    std::memset(cores.bits, 0xFF, sizeof cores.bits);
  }
  return cores;
}

}  // namespace tutti::memory
