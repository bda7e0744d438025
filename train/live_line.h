#pragma once
// What is said of a training while it runs. Pure: where it is printed, and how wide that is, is the caller's.

#include <cstdint>
#include <limits>
#include <string>

namespace tutti::train {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// A step that has been made.
struct Progress {
  std::int64_t step = 0;   ///< steps made, this one among them
  std::int64_t steps = 1;  ///< of the whole training
  double loss = kUnknown;
  double evaluation_loss = kUnknown;  ///< where this step was followed by one
  double tokens_per_s = kUnknown;     ///< of all ranks
  double gradient_norm = kUnknown;    ///< before clipping
  double learning_rate = kUnknown;
  double exposed =
      kUnknown;             ///< the part of the step, from 0 to 1, in which nothing was done but wait for communication
  double eta_s = kUnknown;  ///< seconds until the end, as it looks
};

/// One line without its end that a terminal of so many columns shows on one row, for the place of the one before. The
/// bar has what the figures leave; where they do not fit, those go first that matter least. `unicode`: the terminal
/// shows more than ASCII.
std::string live_line(const Progress& progress, std::size_t columns, bool unicode = true);

/// The same for files and pipes: all figures, no bar.
std::string plain_line(const Progress& progress);

/// The same as one JSON object. What is not known, or not finite, is null.
std::string json_line(const Progress& progress);

/// "45s", "3m20s", "2h05m", "3d04h"; "?" for what is not known.
std::string duration_text(double seconds);

/// "987", "12.3k", "4.56M"
std::string count_text(double count);

}  // namespace tutti::train
