#include "tutti/rendezvous/tls.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tutti/rendezvous/proof.h"

namespace tutti::rendezvous {
namespace {

constexpr std::string_view kIdentity = "tutti";
constexpr std::array<unsigned char, 2> kSuite = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256

template <auto Free>
struct Freer {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using ContextPointer = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using SslPointer = std::unique_ptr<SSL, Freer<SSL_free>>;
using SessionPointer = std::unique_ptr<SSL_SESSION, Freer<SSL_SESSION_free>>;
using MethodPointer = std::unique_ptr<BIO_METHOD, Freer<BIO_meth_free>>;

Error failed(const char* what) {
  char text[256] = "unknown";
  if (const auto code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof(text));
  }
  ERR_clear_error();
  return {.code = Code::system, .message = std::string(what) + ": " + text};
}

// OpenSSL's own socket BIO writes with write(), which raises SIGPIPE in the user's program.
int bio_fd(BIO* bio) { return *static_cast<const int*>(BIO_get_data(bio)); }

template <class Call>
int move_bytes(BIO* bio, int retry_flag, Call call) {
  BIO_clear_retry_flags(bio);
  ssize_t moved = call(bio_fd(bio));
  while (moved < 0 && errno == EINTR) {
    moved = call(bio_fd(bio));
  }
  if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) {
    BIO_set_flags(bio, retry_flag | BIO_FLAGS_SHOULD_RETRY);
  }
  return static_cast<int>(moved);
}
int bio_write(BIO* bio, const char* bytes, int size) {
  return move_bytes(bio, BIO_FLAGS_WRITE,
                    [&](int fd) { return ::send(fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL); });
}
int bio_read(BIO* bio, char* bytes, int size) {
  return move_bytes(bio, BIO_FLAGS_READ, [&](int fd) { return ::recv(fd, bytes, static_cast<std::size_t>(size), 0); });
}
long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

class Connection final : public Transport {
 public:
  Connection(std::shared_ptr<const Tls> context, std::unique_ptr<int> socket, SslPointer ssl)
      : context_(std::move(context)), socket_(std::move(socket)), ssl_(std::move(ssl)) {}

  Progress handshake() override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1) {
      return progress_of(result);
    }
    // The pre-shared key must have been what let the peer in; there is nothing else, and there shall be nothing else.
    return SSL_session_reused(ssl_.get()) == 1 ? Progress::done : Progress::closed;
  }

  Moved read(std::span<char> into) override {
    ERR_clear_error();
    std::size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), into.data(), into.size(), &bytes);
    return result == 1 ? Moved{Progress::done, bytes} : Moved{progress_of(result), 0};
  }

  Moved write(std::string_view bytes) override {
    if (bytes.empty()) {
      return {Progress::done, 0};
    }
    ERR_clear_error();
    std::size_t written = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
    return result == 1 ? Moved{Progress::done, written} : Moved{progress_of(result), 0};
  }

 private:
  Progress progress_of(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    ERR_clear_error();
    switch (error) {
      case SSL_ERROR_WANT_READ: return Progress::want_read;
      case SSL_ERROR_WANT_WRITE: return Progress::want_write;
      default: return Progress::closed;
    }
  }

  std::shared_ptr<const Tls> context_;  ///< has what `ssl_` calls; goes after it
  std::unique_ptr<int> socket_;         ///< the descriptor, where OpenSSL's callbacks look for it
  SslPointer ssl_;
};

class Context final : public Tls, public std::enable_shared_from_this<Context> {
 public:
  Context(Side side, const Secret& secret) : side_(side), key_(tls_key(secret)) {}
  ~Context() override { OPENSSL_cleanse(key_.data(), key_.size()); }

  Status set_up() {
    method_.reset(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "tutti socket"));
    context_.reset(SSL_CTX_new(side_ == Side::server ? TLS_server_method() : TLS_client_method()));
    if (!method_ || !context_) {
      return failed("cannot set up TLS");
    }
    BIO_meth_set_write(method_.get(), bio_write);
    BIO_meth_set_read(method_.get(), bio_read);
    BIO_meth_set_ctrl(method_.get(), bio_control);
    auto* context = context_.get();
    if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 ||
        SSL_CTX_set1_groups_list(context, "X25519") != 1 || SSL_CTX_set_num_tickets(context, 0) != 1) {
      return failed("cannot set up TLS 1.3");
    }
    SSL_CTX_set_app_data(context, this);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (side_ == Side::server) {
      SSL_CTX_set_psk_find_session_callback(context, find_session);
    } else {
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);  // there is no authority: no certificate will do
      SSL_CTX_set_psk_use_session_callback(context, use_session);
    }
    return {};
  }

  Result<std::unique_ptr<Transport>> connect(int fd) const override {
    SslPointer ssl(SSL_new(context_.get()));
    BIO* bio = BIO_new(method_.get());
    if (!ssl || bio == nullptr) {
      BIO_free(bio);
      return failed("cannot make a TLS connection");
    }
    auto socket = std::make_unique<int>(fd);
    BIO_set_data(bio, socket.get());
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl.get(), bio, bio);
    if (side_ == Side::server) {
      SSL_set_accept_state(ssl.get());
    } else {
      SSL_set_connect_state(ssl.get());
    }
    return std::unique_ptr<Transport>(
        std::make_unique<Connection>(shared_from_this(), std::move(socket), std::move(ssl)));
  }

 private:
  /// A session as if from an earlier connection, whose key is ours: how TLS 1.3 takes a key agreed on elsewhere.
  static SSL_SESSION* make_session(SSL* ssl) {
    const auto* self = static_cast<const Context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    SessionPointer session(SSL_SESSION_new());
    const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, kSuite.data());
    if (!session || cipher == nullptr ||
        SSL_SESSION_set1_master_key(session.get(), self->key_.data(), self->key_.size()) != 1 ||
        SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1) {
      return nullptr;
    }
    return session.release();
  }

  static int find_session(SSL* ssl, const unsigned char* identity, std::size_t length, SSL_SESSION** session) {
    *session = nullptr;
    if (std::string_view(reinterpret_cast<const char*>(identity), length) != kIdentity) {
      return 1;  // not ours: goes on without a key, and fails for want of a certificate
    }
    *session = make_session(ssl);
    return *session != nullptr ? 1 : 0;
  }

  static int use_session(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* length,
                         SSL_SESSION** session) {
    *session = make_session(ssl);
    *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
    *length = kIdentity.size();
    return *session != nullptr ? 1 : 0;
  }

  Side side_;
  std::array<std::uint8_t, 32> key_;
  MethodPointer method_;
  ContextPointer context_;
};

}  // namespace

Result<std::shared_ptr<const Tls>> Tls::make(Side side, const Secret& secret) {
  auto context = std::make_shared<Context>(side, secret);
  if (auto status = context->set_up(); !status) {
    return status.error();
  }
  return std::shared_ptr<const Tls>(std::move(context));
}

}  // namespace tutti::rendezvous
