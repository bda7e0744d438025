#include "tutti/gradient/leaving_order.h"

#include <vector>

#include <gtest/gtest.h>

namespace tutti::gradient {
namespace {

TEST(LeavingOrder, StaysWhenTheCableKeepsUp) {
  EXPECT_EQ(first_held(std::vector<Journey>{{1, 0.5}, {2, 0.5}, {3, 0.5}}), 3U);
  EXPECT_EQ(first_held(std::vector<Journey>{{1, 9}}), 1U);
  EXPECT_EQ(first_held({}), 0U);
}

TEST(LeavingOrder, WhatWaitsForTheCableWhenBackwardEndsIsHeld) {
  // The second has the cable from 4 to 7, and the last is full at 5.
  EXPECT_EQ(first_held(std::vector<Journey>{{1, 3}, {2, 3}, {3, 3}, {5, 3}}), 2U);
  // The first alone lasts longer than backward.
  EXPECT_EQ(first_held(std::vector<Journey>{{1, 30}, {2, 3}, {3, 3}, {5, 3}}), 1U);
}

TEST(LeavingOrder, ALastBucketAloneHasNobodyToChangePlacesWith) {
  EXPECT_EQ(first_held(std::vector<Journey>{{1, 3}, {2, 3}, {5, 3}}), 3U);
}

}  // namespace
}  // namespace tutti::gradient
