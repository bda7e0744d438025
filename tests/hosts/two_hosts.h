#pragma once

#include <string>
#include <vector>

#include "tests/multiprocess/launched_tool.h"

namespace tutti::tests {

/// Two hosts joined by a cable: network namespaces with a veth pair, and a stand-in for ssh between them. The launcher
/// runs on the first. They see no other network, and are gone after the test.
class TwoHostsTest : public LauncherTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// `tutti run --hosts alpha:2,beta:3 OPTIONS -- rank_program VERBS`, on the first host.
  std::unique_ptr<LaunchedTool> start_on_hosts(const Words& options, const Words& verbs);

 private:
  std::string alpha_;
  std::string beta_;
};

}  // namespace tutti::tests
