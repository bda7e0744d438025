// The conformance suite for a process group that Python made.

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/utils/pybind.h>

#include "tests/conformance/suite.h"

PYBIND11_MODULE(conformance_module, module) {
  module.def(
      "run",
      [](const c10::intrusive_ptr<c10d::ProcessGroup>& process_group) {
        const auto group = tutti::Group::from(process_group);
        std::vector<std::string> failures;
        int ran = 0;
        for (const auto& one : tutti::conformance::cases()) {
          if (!one.stock) {
            continue;
          }
          ++ran;
          try {
            one.run(group);
          } catch (const std::exception& error) {
            failures.push_back(std::string(one.name) + ": " + error.what());
          }
        }
        return std::make_pair(ran, failures);
      },
      pybind11::call_guard<pybind11::gil_scoped_release>());
}
