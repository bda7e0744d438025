#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "train/mapped_file.h"
#include "train/split.h"
#include "tutti/base/error.h"

namespace tutti::train {

/// Text for a model whose tokens are bytes: documents one after the other, each followed by one zero byte, which tells
/// the model that it ends there. (Text has no zeros. A file that was named and has some is as many documents.)
///
/// Large files are mapped, not copied: the ranks of a host share them. Small ones, below 64 KiB, are read: a process
/// can map some 65,000 at most, and what is read cannot change. What happens to mapped ones that do is told by
/// MappedFile. Any thread.
class Corpus {
 public:
  /// `paths`: files, folders (see text_files), pipes, or "-" for standard input, which is read whole, here, by whoever
  /// calls. Documents come in the order given. Blocks. Each of these is an error and a sentence: no paths, one that is
  /// not there or cannot be read, an empty file, a folder without text, nothing on standard input.
  /// `input`: what "-" stands for, when it has been read already.
  static Result<Corpus> open(const std::vector<std::string>& paths,
                             const std::optional<std::string>& input = std::nullopt);

  /// Of text that is at hand already: what another rank has read from standard input, for example.
  static Corpus of(std::vector<std::string> documents);

  /// Bytes, with the zeros.
  std::int64_t size() const { return starts_.back(); }
  std::int64_t documents() const { return static_cast<std::int64_t>(texts_.size()); }

  /// The bytes from `begin` on, which must be there; a byte is a token. Fails when a mapped file has become shorter.
  Status copy(std::int64_t begin, std::span<std::uint8_t> to) const;

  /// Whether files that are mapped have been written to. Asks the file system for each: now and then, not in each step.
  Status unchanged() const;

  /// Fails unless both parts of the split have a window of `context` + 1 bytes; a share of 0 needs no evaluation.
  Status check(std::int64_t context, double evaluation_share) const;

 private:
  using Text = std::variant<std::string, MappedFile>;

  Status add(const std::string& path);
  Status add_file(const std::string& path);
  Status add_stream(int descriptor, const std::string& name);
  void add_text(Text text);

  std::vector<Text> texts_;
  std::vector<std::int64_t> starts_{0};  // of each document, and where the next would be
};

}  // namespace tutti::train
