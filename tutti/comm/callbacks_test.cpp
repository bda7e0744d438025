#include "tutti/comm/callbacks.h"

#include <atomic>
#include <future>
#include <stdexcept>

#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(Callbacks, OneThatWaitsForTheNextGetsIt) {
  std::promise<void> second;
  std::promise<void> first;
  Callbacks callbacks;
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

TEST(Told, OneAfterTheOtherInOrderWhateverIsThrown) {
  std::vector<int> heard;
  auto callbacks = std::make_shared<Callbacks>();
  auto told = std::make_shared<Told<int>>(
      [&](int thing) {
        heard.push_back(thing);
        if (thing % 7 == 0) {
          throw std::runtime_error("careless");
        }
      },
      callbacks);
  std::vector<int> expected;
  for (int i = 0; i < 300; ++i) {
    told->tell(i);
    expected.push_back(i);
  }
  callbacks->wait_idle();
  EXPECT_EQ(heard, expected);
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
