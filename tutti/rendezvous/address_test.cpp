#include "tutti/rendezvous/address.h"

#include <gtest/gtest.h>

namespace tutti::rendezvous {
namespace {

TEST(Address, reads_back_what_it_writes) {
  for (const auto* text : {"unix:a", "unix:tutti-4711:x", "tcp:localhost:0", "tcp:10.0.0.7:29500", "tcp:[::1]:65535"}) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address.value().text(), text);
    EXPECT_EQ(Address::parse(address.value().text()).value(), address.value());
  }
}

TEST(Address, takes_a_tcp_address_apart) {
  const auto address = Address::parse("tcp:[fe80::3%eth0]:4103").value();
  EXPECT_EQ(address.kind, Address::Kind::tcp);
  EXPECT_EQ(address.name, "fe80::3%eth0");
  EXPECT_EQ(address.port, 4103);
}

TEST(Address, says_what_is_wrong) {
  const struct {
    std::string text;
    std::string_view why;
  } cases[] = {
      {"", "neither"},
      {"localhost:29500", "neither"},
      {"unix:", "1 to 107"},
      {"unix:" + std::string(108, 'x'), "1 to 107"},
      {std::string("unix:a\0b", 8), "NUL"},
      {"tcp:host", "port is missing"},
      {"tcp::17", "host"},
      {"tcp:[]:17", "host"},
      {"tcp:a b:17", "host"},
      {"tcp:::1:17", "brackets"},
      {"tcp:host:", "0 to 65535"},
      {"tcp:host:-1", "0 to 65535"},
      {"tcp:host:65536", "0 to 65535"},
      {"tcp:host:17x", "0 to 65535"},
      {"tcp:" + std::string(254, 'h') + ":17", "host"},
  };
  for (const auto& [text, why] : cases) {
    const auto address = Address::parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, Code::invalid_argument);
    EXPECT_NE(address.error().message.find(why), std::string::npos) << address.error().message;
  }
}

TEST(Address, the_longest_name_is_usable) { EXPECT_TRUE(Address::parse("unix:" + std::string(107, 'x')).ok()); }

TEST(Address, random_names_differ) {
  const auto one = Address::random_unix();
  EXPECT_EQ(one.kind, Address::Kind::unix_name);
  EXPECT_GE(one.name.size(), 32U);  // 128 bits as hexadecimal digits
  EXPECT_NE(one, Address::random_unix());
  EXPECT_EQ(Address::parse(one.text()).value(), one);
}

}  // namespace
}  // namespace tutti::rendezvous
