#include <keel/savedmodel/tool/printable_output.h>

#include <absl/strings/str_format.h>
#include <iostream>

namespace keel::tool {
namespace {

constexpr unsigned char kFirstOfC1 = 0xC2;  // U+0080 to U+009F are C2 80 to C2 9F in UTF-8

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7F; }

// Escapes a text that arrives byte by byte; `write` gets the pieces.
class Escaper {
 public:
  explicit Escaper(std::string_view kept) : kept_(kept) {}

  template <class Write>
  void put(char c, Write write) {
    const auto byte = static_cast<unsigned char>(c);
    if (pending_) {
      pending_ = false;
      if (byte >= 0x80 && byte <= 0x9F) return write(absl::StrFormat("\\x%02x", byte));
      write(std::string(1, static_cast<char>(kFirstOfC1)));
    }
    if (byte == kFirstOfC1) {
      pending_ = true;
    } else if (is_control(byte) && kept_.find(c) == std::string_view::npos) {
      write(absl::StrFormat("\\x%02x", byte));
    } else {
      write(std::string(1, c));
    }
  }
  template <class Write>
  void finish(Write write) {
    if (pending_) write(std::string(1, static_cast<char>(kFirstOfC1)));
    pending_ = false;
  }

 private:
  const std::string_view kept_;
  bool pending_ = false;
};

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  Escaper escaper(kept);
  const auto write = [&](const std::string& piece) { out += piece; };
  for (char c : text) escaper.put(c, write);
  escaper.finish(write);
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, "\n"); }
std::string printable_name(std::string_view name) { return escaped(name, ""); }

class PrintableOutput::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::streambuf* to) : to_(to) {}
  void finish() {
    escaper_.finish([this](const std::string& piece) { write(piece); });
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* from, std::streamsize count) override {
    for (std::streamsize i = 0; i < count; ++i) {
      escaper_.put(from[i], [this](const std::string& piece) { write(piece); });
    }
    return failed_ ? 0 : count;
  }
  int sync() override { return failed_ ? -1 : to_->pubsync(); }

 private:
  void write(const std::string& piece) {
    const auto size = static_cast<std::streamsize>(piece.size());
    if (to_->sputn(piece.data(), size) != size) failed_ = true;
  }

  std::streambuf* const to_;
  Escaper escaper_{"\n\t"};
  bool failed_ = false;
};

PrintableOutput::PrintableOutput()
    : buffer_(std::make_unique<Buffer>(std::cout.rdbuf())),
      before_(std::cout.rdbuf(buffer_.get())) {}

PrintableOutput::~PrintableOutput() {
  buffer_->finish();
  const std::ios_base::iostate state = std::cout.rdstate();
  std::cout.rdbuf(before_);  // clears the state
  std::cout.setstate(state);
}

}  // namespace keel::tool
