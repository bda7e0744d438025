#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tutti/base/error.h"
#include "tutti/rendezvous/secret.h"

namespace tutti::rendezvous {

// How a tcp peer shows that it holds the job's secret before it costs anything: the server sends a challenge, the peer
// a proof, both of one fixed size. Fresh numbers of both sides go into it, so that neither an old proof nor an old
// challenge is worth anything.

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kChallengeBytes = 8 + kNonceBytes;
inline constexpr std::size_t kProofBytes = 8 + kNonceBytes + 32;

using Nonce = std::array<std::uint8_t, kNonceBytes>;

/// Fresh random bits; fails only when the kernel has none.
Result<Nonce> make_nonce();

std::string encode_challenge(const Nonce& server);
/// Code::protocol for anything that is not a challenge.
Result<Nonce> decode_challenge(std::string_view bytes);

std::string make_proof(const Secret& secret, const Nonce& server, const Nonce& client);
/// Whether these first bytes can be the start of a proof.
bool looks_like_proof(std::string_view bytes);
/// Takes the same time for every wrong proof. Code::protocol: not a proof at all; Code::refused: of another secret.
Status check_proof(const Secret& secret, const Nonce& server, std::string_view bytes);

/// The pre-shared key for TLS: derived, so that what a proof shows says nothing about it.
std::array<std::uint8_t, 32> tls_key(const Secret& secret);

}  // namespace tutti::rendezvous
