// keras_coverage [--write FILE]: prints or writes the page of Keras 3 names that Keel offers.
#include <fstream>
#include <iostream>

#include "tests/conformance/keras_coverage.h"

int main(int argc, char** argv) {
  constexpr char kHelp[] =
      "usage: keras_coverage [--write FILE]\n\n"
      "Prints the coverage of Keras 3's public API as docs/keras_coverage.md shows it, or\n"
      "writes it to FILE.\n";
  const std::string flag = argc > 1 ? argv[1] : "";
  if (argc == 2 && (flag == "--help" || flag == "-h")) {
    std::cout << kHelp;
    return 0;
  }
  const std::string page = keel::conformance::keras_coverage_page();
  if (argc == 1) {
    std::cout << page;
    return 0;
  }
  if (argc != 3 || flag != "--write") {
    std::cerr << kHelp;
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary);
  out << page << std::flush;
  if (!out) {
    std::cerr << "keras_coverage: " << argv[2] << ": cannot be written\n";
    return 1;
  }
  return 0;
}
