#include "tutti/comm/callbacks.h"

#include <atomic>
#include <future>
#include <stdexcept>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Callbacks, OneThatWaitsForTheNextGetsIt) {
  Callbacks callbacks;
  std::promise<void> second;
  std::promise<void> first;
  callbacks.run([&] {
    second.get_future().wait();
    first.set_value();
  });
  callbacks.run([&] { second.set_value(); });
  EXPECT_EQ(first.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(Callbacks, AllAreOverAfterTheWait) {
  Callbacks callbacks;
  std::atomic<int> done{0};
  for (int i = 0; i < 200; ++i) {
    callbacks.run([&] { ++done; });
  }
  callbacks.wait_idle();
  EXPECT_EQ(done, 200);
}

TEST(Callbacks, WhatTheyThrowEndsNothing) {
  Callbacks callbacks;
  std::atomic<int> done{0};
  callbacks.run([] { throw std::runtime_error("careless"); });
  callbacks.run([] { throw 7; });
  callbacks.run([&] { ++done; });
  callbacks.wait_idle();
  EXPECT_EQ(done, 1);
}

TEST(Callbacks, TheLastHandleMayGoInOne) {
  auto callbacks = std::make_shared<Callbacks>();
  std::promise<void> gone;
  std::promise<void> start;
  callbacks->run([held = callbacks, &start, &gone]() mutable {
    start.get_future().wait();
    held.reset();
    gone.set_value();
  });
  callbacks.reset();
  start.set_value();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
}

TEST(Callbacks, AfterTheEndTheyRunHere) {
  Callbacks callbacks;
  callbacks.stop();
  bool done = false;
  callbacks.run([&] { done = true; });
  EXPECT_TRUE(done);
  callbacks.wait_idle();
}

}  // namespace
}  // namespace tutti
