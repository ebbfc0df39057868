// Runs a code block of the documentation: doc_blocks NAME.
#include <cstdio>
#include <cstring>

#include "tests/docs/doc_block.h"

namespace keel_docs {
namespace {

constinit const Block* first_block = nullptr;

}  // namespace

Block::Block(const char* name, Run main) : name_(name), run_(main), next_(first_block) {
  first_block = this;
}

int Block::run(const char* name) {
  for (const Block* block = first_block; block != nullptr; block = block->next_) {
    if (std::strcmp(block->name_, name) == 0) return block->run_();
  }
  std::fprintf(stderr, "doc_blocks: no block '%s'\n", name);
  return 2;
}

}  // namespace keel_docs

int main(int argc, char** argv) { return keel_docs::Block::run(argc == 2 ? argv[1] : ""); }
