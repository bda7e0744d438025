#pragma once
// `tutti bench --links`: times plans on the ranks at hand, finds the figures of a network that explain them, and tells
// how far these hold for plans that were not used to find them.

namespace bench {

/// Whether the arguments ask for that.
bool wants_links(int count, char** words);

/// Does it; what the program exits with. Every rank calls it.
int links_main(int count, char** words);

}  // namespace bench
