#include <algorithm>
#include <array>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/hdf5/hdf5_check_internal.h>

namespace keel::hdf5_check_internal {

Input::Input(const FilePart& part, const std::string& name)
    : path_(name),
      file_(part.path, std::ios::binary | std::ios::ate),
      offset_(static_cast<uint64_t>(part.offset)) {
  if (!file_) throw IoError(name, ": cannot be opened; check the path and its permissions");
  const auto end = file_.tellg();
  if (end < 0) throw IoError(name, ": is not a regular file; pass the path of a file");
  size_ = static_cast<uint64_t>(end);
  check_range(offset_, 0);
  size_ -= offset_;
  if (part.bytes < 0) return;
  check_range(0, static_cast<uint64_t>(part.bytes));
  size_ = static_cast<uint64_t>(part.bytes);
}

void Input::check_range(uint64_t address, uint64_t count) const {
  // A sum of both could overflow: they are numbers of the file, which may be damaged.
  if (address <= size_ && count <= size_ - address) return;
  throw IoError(path_, ": truncated or damaged: ", count, " bytes at ", address,
                " are outside the file, which has ", size_, " bytes; restore it from a copy");
}

Bytes Input::at(uint64_t address, uint64_t count) {
  check_range(address, count);
  auto block = std::make_shared<std::string>(count, '\0');
  file_.seekg(static_cast<std::streamoff>(offset_ + address));
  file_.read(block->data(), static_cast<std::streamsize>(count));
  if (!file_) throw IoError(path_, ": cannot be read at byte ", address);
  return {path_, address, std::move(block)};
}

void Bytes::fail(const char* what) const {
  throw IoError(*path_, ": damaged, or not supported in a model file: near byte ", address_, ": ",
                what);
}

Bytes Bytes::part(uint64_t offset, uint64_t count) const {
  if (offset > left() || count > left() - offset) fail("a block that is too short");
  Bytes out = *this;
  out.address_ += offset;
  out.text_ = text_.substr(offset, count);
  return out;
}

Bytes Bytes::take(uint64_t count) {
  Bytes out = part(0, count);
  address_ += count;
  text_.remove_prefix(count);
  return out;
}

uint64_t Bytes::number(int bytes) {
  const Bytes from = take(bytes);
  uint64_t out = 0;
  for (int i = bytes - 1; i >= 0; --i) out = out << 8 | static_cast<unsigned char>(from.text_[i]);
  return out;
}

void Bytes::expect(std::string_view signature) {
  if (text_.substr(0, signature.size()) != signature) fail("an unexpected signature");
  skip(signature.size());
}

namespace {

enum Class { kInteger = 0, kFloat = 1, kString = 3, kEnum = 8, kVariableLength = 9 };

// The layout of IEEE floating-point numbers.
struct FloatFormat {
  uint32_t size;
  uint8_t sign_at;
  std::array<uint8_t, 4> exponent_and_mantissa;  // position and length of each
  uint32_t bias;
};
constexpr std::array<FloatFormat, 3> kFloats = {{
    {2, 15, {10, 5, 0, 10}, 15},
    {4, 31, {23, 8, 0, 23}, 127},
    {8, 63, {52, 11, 0, 52}, 1023},
}};

void check_float(Bytes& bytes, uint32_t flags, uint32_t size) {
  const auto* format = std::ranges::find(kFloats, size, &FloatFormat::size);
  if (format == kFloats.end()) bytes.fail("a floating-point type of unsupported size");
  const uint16_t offset = bytes.u16();
  const uint16_t precision = bytes.u16();
  bool usual = offset == 0 && precision == 8 * size && (flags & 0xFE) == 0x20 &&
               flags >> 8 == format->sign_at;
  for (uint8_t expected : format->exponent_and_mantissa) usual = bytes.u8() == expected && usual;
  usual = bytes.u32() == format->bias && usual;
  if (!usual) bytes.fail("a floating-point type that is not IEEE 754");
}

void check_enum(Bytes& bytes, uint32_t flags, uint32_t size, int version) {
  Bytes base = bytes;
  if ((base.u8() & 15) != kInteger || check_datatype(bytes).size != size) {
    bytes.fail("an enumeration of a type other than integers");
  }
  const uint32_t members = flags & 0xFFFF;
  for (uint32_t i = 0; i < members; ++i) {
    const size_t length = bytes.text().find('\0');
    if (length == std::string_view::npos) bytes.fail("an unterminated name");
    // Before version 3, names and their zero are padded to a multiple of 8 bytes.
    bytes.skip(version < 3 ? (length + 8) / 8 * 8 : length + 1);
  }
  bytes.skip(uint64_t{members} * size);
}

}  // namespace

Datatype check_datatype(Bytes& bytes) {
  const uint8_t head = bytes.u8();
  const int version = head >> 4;
  if (version < 1 || version > 3) bytes.fail("a type of unknown version");
  const uint32_t low = bytes.u16();
  const uint32_t flags = low | uint32_t{bytes.u8()} << 16;
  const uint32_t size = bytes.u32();
  switch (head & 15) {
    case kInteger:
      if ((flags & ~9U) != 0 || bytes.u16() != 0 || bytes.u16() != 8 * size ||
          (size != 1 && size != 2 && size != 4 && size != 8)) {
        bytes.fail("an integer type of unsupported form");
      }
      return {.size = size};
    case kFloat:
      check_float(bytes, flags, size);
      return {.size = size};
    case kString:
      if (size == 0 || (flags & 15) > 2 || flags >> 4 > 1)
        bytes.fail("a string type of unsupported form");
      return {.size = size};
    case kEnum:
      check_enum(bytes, flags, size, version);
      return {.size = size};
    case kVariableLength: {
      Bytes base = bytes;
      const int base_class = base.u8() & 15;
      if ((flags & 15) != 1 || (flags >> 4 & 15) > 2 || flags >> 8 > 1 || size != 16 ||
          (base_class != kInteger && base_class != kString) || check_datatype(bytes).size != 1) {
        bytes.fail("a variable-length type other than strings");
      }
      return {.size = size, .variable_string = true};
    }
    default:
      bytes.fail("a type other than numbers, enumerations and strings");
  }
}

std::vector<uint64_t> check_dataspace(Bytes& bytes) {
  constexpr int kMaxRank = 32;
  const uint8_t version = bytes.u8();
  const uint8_t rank = bytes.u8();
  const uint8_t flags = bytes.u8();
  if (version < 1 || version > 2 || rank > kMaxRank || flags > 1) {
    bytes.fail("a shape of unknown form");
  }
  uint8_t kind = rank == 0 ? 0 : 1;
  if (version == 1) {
    bytes.skip(5);  // reserved
  } else {
    kind = bytes.u8();
  }
  if (kind > 2 || (kind != 1 && rank > 0)) bytes.fail("a shape of unknown form");
  if (kind == 2) return {0};  // a null dataspace, which has no elements
  std::vector<uint64_t> dims(rank);
  for (uint64_t& dim : dims) dim = bytes.u64();
  // The largest size of each dimension follows.
  if (flags == 1) {
    for (uint64_t dim : dims) {
      if (bytes.u64() < dim) bytes.fail("a shape larger than its limit");
    }
  }
  return dims;
}

}  // namespace keel::hdf5_check_internal
