#include "train/corpus.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "train/batches.h"
#include "train/files.h"
#include "tutti/base/file_descriptor.h"

namespace tutti::train {
namespace {

constexpr std::size_t kSmall = std::size_t{64} << 10;

Error bad(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }

}  // namespace

Result<Corpus> Corpus::open(const std::vector<std::string>& paths, const std::optional<std::string>& input) {
  if (paths.empty()) {
    return bad("no data: name files or folders, or - for standard input");
  }
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    return bad("standard input (-) can be read only once");
  }
  Corpus corpus;
  for (const auto& path : paths) {
    if (path == "-" && input) {
      corpus.add_text(*input);
    } else if (const auto added = corpus.add(path); !added) {
      return added.error();
    }
  }
  return corpus;
}

Corpus Corpus::of(std::vector<std::string> documents) {
  Corpus corpus;
  for (auto& document : documents) {
    corpus.add_text(std::move(document));
  }
  return corpus;
}

Status Corpus::add(const std::string& path) {
  if (path == "-") {
    return add_stream(STDIN_FILENO, "standard input");
  }
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    return Error{errno == ENOENT ? Code::not_found : Code::system,
                 fmt::format("{}: cannot read: {}", path, std::strerror(errno))};
  }
  if (S_ISFIFO(about.st_mode)) {
    const FileDescriptor pipe(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return add_stream(pipe.get(), path);
  }
  if (!S_ISDIR(about.st_mode)) {
    return S_ISREG(about.st_mode) ? add_file(path) : bad(fmt::format("{}: is neither a file nor a folder", path));
  }
  const auto files = text_files(path);
  if (!files) {
    return files.error();
  }
  if (files.value().empty()) {
    return bad(fmt::format("{}: no text in this folder (hidden, binary and empty files do not count)", path));
  }
  for (const auto& file : files.value()) {
    if (auto added = add_file(file); !added) {
      return added;
    }
  }
  return {};
}

Status Corpus::add_file(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) {
    return file.error();
  }
  const auto size = file.value().size();
  if (size == 0) {
    return bad(fmt::format("{}: is empty", path));
  }
  if (size >= kSmall) {
    add_text(std::move(file).value());
    return {};
  }
  std::string text(size, '\0');
  if (auto copied = file.value().copy(0, std::as_writable_bytes(std::span(text))); !copied) {
    return copied;
  }
  add_text(std::move(text));
  return {};
}

Status Corpus::add_stream(int descriptor, const std::string& name) {
  auto text = read_to_end(descriptor, name);
  if (!text) {
    return text.error();
  }
  if (text.value().empty()) {
    return bad(fmt::format("{}: is empty", name));
  }
  add_text(std::move(text).value());
  return {};
}

void Corpus::add_text(Text text) {
  const auto bytes = std::visit([](const auto& one) { return one.size(); }, text);
  texts_.push_back(std::move(text));
  starts_.push_back(starts_.back() + static_cast<std::int64_t>(bytes) + 1);
}

Status Corpus::copy(std::int64_t begin, std::span<std::uint8_t> to) const {
  require(begin >= 0 && begin <= size() && std::cmp_less_equal(to.size(), size() - begin),
          "a copy lies within the corpus");
  auto document =
      static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin()) - 1;
  for (auto at = static_cast<std::size_t>(begin - starts_[document]); !to.empty(); at = 0, ++document) {
    const auto length = static_cast<std::size_t>(starts_[document + 1] - starts_[document]) - 1;
    const auto here = to.first(std::min(to.size(), length - at));
    if (const auto* const text = std::get_if<std::string>(&texts_[document])) {
      std::copy_n(text->begin() + static_cast<std::ptrdiff_t>(at), here.size(), here.begin());
    } else if (auto copied = std::get<MappedFile>(texts_[document]).copy(at, std::as_writable_bytes(here)); !copied) {
      return copied;
    }
    to = to.subspan(here.size());
    if (!to.empty()) {
      to.front() = 0;
      to = to.subspan(1);
    }
  }
  return {};
}

Status Corpus::unchanged() const {
  for (const auto& text : texts_) {
    if (const auto* const file = std::get_if<MappedFile>(&text)) {
      if (auto same = file->unchanged(); !same) {
        return same;
      }
    }
  }
  return {};
}

Status Corpus::check(std::int64_t context, double evaluation_share) const {
  if (size() < context + 1) {
    return bad(fmt::format("the data has {} bytes, and a context of {} needs {}: give more text or a shorter context",
                           size(), context, context + 1));
  }
  const auto parts = split(size(), evaluation_share);
  for (const auto& [pieces, what] :
       {std::pair(&parts.training, "train on"), std::pair(&parts.evaluation, "evaluate")}) {
    const bool needed = pieces == &parts.training || evaluation_share > 0;
    if (needed && Windows(*pieces, context).count() == 0) {
      return bad(
          fmt::format("the data has {} bytes; with an evaluation share of {} no stretch of {} bytes is left to {}: "
                      "give more text, another share (0: no evaluation) or a shorter context",
                      size(), evaluation_share, context + 1, what));
    }
  }
  return {};
}

}  // namespace tutti::train
