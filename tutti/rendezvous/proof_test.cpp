#include "tutti/rendezvous/proof.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace tutti::rendezvous {
namespace {

Nonce filled(std::uint8_t byte) {
  Nonce nonce{};
  nonce.fill(byte);
  return nonce;
}

Secret secret(std::uint8_t byte) {
  std::array<std::uint8_t, Secret::kBytes> bytes{};
  bytes.fill(byte);
  return Secret(bytes);
}

TEST(Proof, holds_for_its_secret_and_its_challenge_alone) {
  const auto proof = make_proof(secret(1), filled(2), filled(3));
  EXPECT_EQ(proof.size(), kProofBytes);
  EXPECT_TRUE(check_proof(secret(1), filled(2), proof).ok());
  EXPECT_EQ(check_proof(secret(7), filled(2), proof).error().code, Code::refused);
  EXPECT_EQ(check_proof(secret(1), filled(7), proof).error().code, Code::refused);
}

TEST(Proof, no_bit_of_it_is_idle) {
  const auto proof = make_proof(secret(1), filled(2), filled(3));
  for (std::size_t bit = 0; bit < 8 * proof.size(); ++bit) {
    auto flipped = proof;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(check_proof(secret(1), filled(2), flipped).ok()) << bit;
  }
}

TEST(Proof, a_wrong_length_is_no_proof) {
  const auto proof = make_proof(secret(1), filled(2), filled(3));
  EXPECT_EQ(check_proof(secret(1), filled(2), proof.substr(1)).error().code, Code::protocol);
  EXPECT_EQ(check_proof(secret(1), filled(2), proof + "x").error().code, Code::protocol);
  EXPECT_EQ(check_proof(secret(1), filled(2), "").error().code, Code::protocol);
}

TEST(Proof, its_start_is_known) {
  const auto proof = make_proof(secret(1), filled(2), filled(3));
  for (std::size_t length = 0; length <= proof.size(); ++length) {
    EXPECT_TRUE(looks_like_proof(proof.substr(0, length)));
  }
  EXPECT_FALSE(looks_like_proof("GET /"));
  EXPECT_FALSE(looks_like_proof(proof + "x"));
}

TEST(Proof, challenges_come_back_as_they_went) {
  const auto nonce = make_nonce().value();
  EXPECT_EQ(encode_challenge(nonce).size(), kChallengeBytes);
  EXPECT_EQ(decode_challenge(encode_challenge(nonce)).value(), nonce);
  EXPECT_FALSE(decode_challenge("220 mail.example.org ESMTP").ok());
  EXPECT_FALSE(decode_challenge(std::string(kChallengeBytes, 'x')).ok());
  EXPECT_NE(make_nonce().value(), nonce);
}

TEST(Proof, the_key_for_tls_is_neither_the_secret_nor_a_proof) {
  const auto key = tls_key(secret(1));
  EXPECT_FALSE(std::equal(key.begin(), key.end(), secret(1).bytes().begin()));
  EXPECT_NE(key, tls_key(secret(2)));
  const std::string text(reinterpret_cast<const char*>(key.data()), key.size());
  EXPECT_EQ(make_proof(secret(1), filled(0), filled(0)).find(text), std::string::npos);
}

}  // namespace
}  // namespace tutti::rendezvous
