// The code blocks of the documentation as functions of one program; see code_blocks.py.
#pragma once

#include <type_traits>

namespace keel_docs {

// A block under its name. All blocks are in a list.
class Block {
 public:
  using Run = int (*)();
  Block(const char* name, Run run);

  // Runs the block with this name and returns its exit status. Returns 2 if there is none.
  static int run(const char* name);

 private:
  const char* const name_;
  const Run run_;
  const Block* const next_;
};

// Calls the main() of a block, which may lack the return statement.
template <auto block_main>
int run_block() {
  if constexpr (std::is_void_v<decltype(block_main())>) {
    block_main();
    return 0;
  } else {
    return block_main();
  }
}

}  // namespace keel_docs
