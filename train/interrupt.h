#pragma once

namespace tutti::train {

/// Ctrl-C and SIGTERM as a question instead of an end: they are held back from this thread, and from those that it
/// makes later, and stay pending. Made before other threads are; lasts as long as the process.
class Interrupt {
 public:
  Interrupt();
  /// Whether somebody asked for an end. Any thread.
  static bool asked();
};

}  // namespace tutti::train
