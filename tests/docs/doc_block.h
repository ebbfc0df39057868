// The code blocks of the documentation as functions of one program; see code_blocks.py.
#pragma once

namespace keel_docs {

// A block under its name. All blocks are in a list.
class Block {
 public:
  using Run = int (*)();
  Block(const char* name, Run main);

  // Runs the block with this name and returns its exit status. Returns 2 if there is none.
  static int run(const char* name);

 private:
  const char* const name_;
  const Run run_;
  const Block* const next_;
};

}  // namespace keel_docs
