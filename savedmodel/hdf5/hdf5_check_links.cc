// Links of groups in files of HDF5 1.8 and newer, according to its file format specification.
#include <string>
#include <string_view>
#include <vector>

#include <keel/savedmodel/hdf5/hdf5_check_internal.h>

namespace keel::hdf5_check_internal {
namespace {

constexpr uint64_t kUndefined = ~uint64_t{0};
constexpr uint64_t kTreeOverhead = 10;  // signature, version, type and checksum of a node
constexpr uint64_t kIdBytes = 7;        // length of the id of a link in the heap
constexpr uint64_t kRecordBytes = 4 + kIdBytes;

// The fractal heap that contains the link messages.
class FractalHeap {
 public:
  FractalHeap(Input& in, uint64_t address) : in_(in), address_(address) {
    Bytes head = in.at(address, 142);
    head.expect("FRHP");
    if (head.u8() != 0) head.fail("a heap of unknown version");
    const uint16_t id_bytes = head.u16();
    const uint16_t filters = head.u16();
    if (id_bytes != kIdBytes || filters != 0) head.fail("a heap of unsupported form");
    head.skip(1 + 4 + 12 * 8);
    const uint16_t width = head.u16();
    const uint64_t start = head.u64();
    const uint64_t largest = head.u64();
    const uint16_t bits = head.u16();
    head.skip(2);
    const uint64_t root = head.u64();
    const uint16_t rows = head.u16();
    if (bits != 32 || width == 0 || width > 64 || start == 0 || start > largest ||
        largest > (1 << 20)) {
      head.fail("a heap of unsupported form");
    }
    if (root == kUndefined) return;
    if (rows == 0) {
      add_block(root, start, 0);
    } else {
      add_rows(root, {.width = width, .rows = rows, .start = start, .largest = largest});
    }
  }

  Bytes object(Bytes& id) const {
    if (id.u8() != 0) id.fail("a link that is not stored directly in its heap");
    const uint64_t offset = id.u32();
    const uint64_t length = id.u16();
    for (const Block& block : blocks_) {
      if (offset < block.offset || offset - block.offset >= block.data.left()) continue;
      return block.data.part(offset - block.offset, length);
    }
    id.fail("a link outside its heap");
  }

 private:
  struct Block {
    uint64_t offset;  // in the heap; heap offsets include the headers of blocks
    Bytes data;
  };
  struct Table {
    uint16_t width, rows;
    uint64_t start, largest;
  };

  void add_block(uint64_t address, uint64_t size, uint64_t offset) {
    Bytes block = in_.at(address, size);
    const Bytes all = block;
    check_head(block, "FHDB", offset);
    blocks_.push_back({.offset = offset, .data = all});
  }

  void check_head(Bytes& block, std::string_view signature, uint64_t offset) const {
    block.expect(signature);
    if (block.u8() != 0 || block.u64() != address_ || block.u32() != offset) {
      block.fail("a block that belongs to another heap");
    }
  }

  // Adds rows of blocks. The block size doubles with each row from the third one on.
  void add_rows(uint64_t address, const Table& table) {
    if (table.rows > 24) in_.at(address, 1).fail("a heap with too many rows");
    Bytes block = in_.at(address, 21 + uint64_t{8} * table.width * table.rows);
    check_head(block, "FHIB", 0);
    uint64_t offset = 0, size = table.start;
    for (int row = 0; row < table.rows; ++row) {
      if (row > 1) size *= 2;
      if (size > table.largest) block.fail("a heap with more links than are supported");
      for (int i = 0; i < table.width; ++i, offset += size) {
        const uint64_t child = block.u64();
        if (child != kUndefined) add_block(child, size, offset);
      }
    }
  }

  Input& in_;
  const uint64_t address_;
  std::vector<Block> blocks_;
};

void check_node(Bytes& node, std::string_view signature) {
  node.expect(signature);
  if (node.u8() != 0) node.fail("a B-tree of unknown version");
  if (node.u8() != 5) node.fail("a B-tree of an unexpected type");
}

// The ids of the links, from a B-tree of at most two levels.
class LinkIndex {
 public:
  LinkIndex(Input& in, uint64_t address) : in_(in) {
    Bytes head = in.at(address, 38);
    check_node(head, "BTHD");
    node_bytes_ = head.u32();
    const uint16_t record = head.u16();
    const uint16_t depth = head.u16();
    head.skip(2);
    const uint64_t root = head.u64();
    const uint16_t records = head.u16();
    if (record != kRecordBytes || node_bytes_ < 64 || node_bytes_ > 2048) {
      head.fail("a B-tree of unsupported form");
    }
    if (depth > 1) head.fail("more links than are supported");
    if (root == kUndefined) return;
    if (depth == 0) {
      add_leaf(root, records);
    } else {
      add_children(root, records);
    }
  }

  std::vector<Bytes> take() { return std::move(ids_); }

 private:
  Bytes node_at(uint64_t address, std::string_view signature, uint64_t bytes) {
    Bytes node = in_.at(address, node_bytes_);
    check_node(node, signature);
    if (bytes > node_bytes_ - kTreeOverhead) node.fail("more links than fit into their node");
    return node;
  }

  void add_records(Bytes& node, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      node.skip(4);  // the hash of the name
      ids_.push_back(node.take(kIdBytes));
    }
  }

  void add_leaf(uint64_t address, uint64_t records) {
    Bytes node = node_at(address, "BTLF", records * kRecordBytes);
    add_records(node, records);
  }

  void add_children(uint64_t address, uint64_t records) {
    constexpr uint64_t kPointerBytes = 8 + 1;
    Bytes node = node_at(address, "BTIN", records * kRecordBytes + (records + 1) * kPointerBytes);
    add_records(node, records);
    for (uint64_t i = 0; i <= records; ++i) {
      const uint64_t child = node.u64();
      add_leaf(child, node.u8());
    }
  }

  Input& in_;
  uint32_t node_bytes_ = 0;
  std::vector<Bytes> ids_;
};

}  // namespace

uint64_t check_link(Bytes& message) {
  if (message.u8() != 1) message.fail("a link of unknown version");
  const uint8_t flags = message.u8();
  if ((flags & ~0x1F) != 0) message.fail("a link with unsupported flags");
  if ((flags & 8) != 0 && message.u8() != 0) {
    message.fail("a soft or external link, which is not supported");
  }
  if ((flags & 4) != 0) message.skip(8);
  if ((flags & 0x10) != 0 && message.u8() > 1) message.fail("a name in an unknown character set");
  const int width = 1 << (flags & 3);
  const uint64_t length = width == 1   ? message.u8()
                          : width == 2 ? message.u16()
                          : width == 4 ? message.u32()
                                       : message.u64();
  const std::string_view name = message.take(length).text();
  constexpr std::string_view kForbidden("/\0", 2);
  if (name.empty() || name.find_first_of(kForbidden) != std::string_view::npos) {
    message.fail("a link with an empty or invalid name");
  }
  return message.u64();
}

std::vector<Bytes> check_dense_links(Input& in, Bytes& link_info) {
  if (link_info.u8() != 0) link_info.fail("links of unknown version");
  const uint8_t flags = link_info.u8();
  if ((flags & ~3) != 0) link_info.fail("links with unsupported flags");
  if ((flags & 1) != 0) link_info.skip(8);
  const uint64_t heap_address = link_info.u64();
  const uint64_t tree_address = link_info.u64();
  if (heap_address == kUndefined) return {};
  const FractalHeap heap(in, heap_address);
  std::vector<Bytes> out;
  for (Bytes& id : LinkIndex(in, tree_address).take()) out.push_back(heap.object(id));
  return out;
}

}  // namespace keel::hdf5_check_internal
