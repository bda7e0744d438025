#include "tutti/rendezvous/proof.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace tutti::rendezvous {
namespace {

constexpr std::string_view kChallengeMagic = "TUTTI-C1";
constexpr std::string_view kProofMagic = "TUTTI-P1";
constexpr std::string_view kProofLabel = "tutti rendezvous proof 1";
constexpr std::string_view kTlsLabel = "tutti rendezvous tls 1";

using Digest = std::array<std::uint8_t, 32>;

std::string_view view(const Nonce& nonce) { return {reinterpret_cast<const char*>(nonce.data()), nonce.size()}; }

Digest keyed_hash(const Secret& secret, const std::string& message) {
  Digest digest{};
  unsigned int length = 0;
  const auto* done =
      HMAC(EVP_sha256(), secret.bytes().data(), static_cast<int>(Secret::kBytes),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(), &length);
  require(done != nullptr && length == digest.size(), "OpenSSL computes HMAC-SHA256");
  return digest;
}

Digest proof_of(const Secret& secret, std::string_view server, std::string_view client) {
  return keyed_hash(secret, std::string(kProofLabel).append(server).append(client));
}

}  // namespace

Result<Nonce> make_nonce() {
  Nonce nonce{};
  const ssize_t got = ::getrandom(nonce.data(), nonce.size(), 0);
  if (got != static_cast<ssize_t>(nonce.size())) {
    return system_error("cannot get random bytes", got < 0 ? errno : EIO);
  }
  return nonce;
}

std::string encode_challenge(const Nonce& server) { return std::string(kChallengeMagic).append(view(server)); }

Result<Nonce> decode_challenge(std::string_view bytes) {
  if (bytes.size() != kChallengeBytes || !bytes.starts_with(kChallengeMagic)) {
    return Error{.code = Code::protocol, .message = "is not a store of Tutti"};
  }
  Nonce nonce{};
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(kChallengeMagic.size()), nonce.size(), nonce.begin());
  return nonce;
}

std::string make_proof(const Secret& secret, const Nonce& server, const Nonce& client) {
  const auto digest = proof_of(secret, view(server), view(client));
  std::string proof(kProofMagic);
  proof.append(view(client));
  return proof.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

bool looks_like_proof(std::string_view bytes) {
  const auto seen = bytes.substr(0, kProofMagic.size());
  return bytes.size() <= kProofBytes && seen == kProofMagic.substr(0, seen.size());
}

Status check_proof(const Secret& secret, const Nonce& server, std::string_view bytes) {
  if (bytes.size() != kProofBytes || !bytes.starts_with(kProofMagic)) {
    return Error{.code = Code::protocol, .message = "does not speak this protocol"};
  }
  const auto client = bytes.substr(kProofMagic.size(), kNonceBytes);
  const auto expected = proof_of(secret, view(server), client);
  if (CRYPTO_memcmp(expected.data(), bytes.data() + kProofMagic.size() + kNonceBytes, expected.size()) != 0) {
    return Error{.code = Code::refused, .message = "does not hold this job's secret"};
  }
  return {};
}

std::array<std::uint8_t, 32> tls_key(const Secret& secret) { return keyed_hash(secret, std::string(kTlsLabel)); }

}  // namespace tutti::rendezvous
