// Mutations that know a little of what they change, so that files stay readable for long enough to
// reach the code behind their first checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace keel::fuzz {

using Random = std::minstd_rand;  // the same sequence everywhere

// A number in [0, bound).
size_t below(Random& random, size_t bound);

// One to four changes of a binary file: of bytes, of little-endian fields of 2, 4 or 8 bytes to
// numbers that are near others, extreme or addresses of the file, of texts' digits; a piece copied
// elsewhere; rarely an end cut off, or a mutation of libFuzzer's own.
void mutate_binary(std::string& bytes, size_t max_size, Random& random);

// Changes JSON text, either as a tree, in which a value is replaced, moved, duplicated or removed
// or two values are swapped, or as text. Text that is not JSON is changed as text.
void mutate_json(std::string& text, size_t max_size, Random& random);

}  // namespace keel::fuzz
