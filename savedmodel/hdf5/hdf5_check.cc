#include <keel/savedmodel/hdf5/hdf5_check.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/hdf5/hdf5_check_internal.h>

namespace keel {

using hdf5_check_internal::Bytes;
using hdf5_check_internal::check_dataspace;
using hdf5_check_internal::check_datatype;
using hdf5_check_internal::check_dense_links;
using hdf5_check_internal::check_link;
using hdf5_check_internal::Datatype;
using hdf5_check_internal::Input;

namespace {

constexpr uint64_t kUndefined = ~uint64_t{0};

// Message types in object headers.
enum Message : uint16_t {
  kNil = 0x00,
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kOldFill = 0x04,
  kFill = 0x05,
  kLink = 0x06,
  kExternal = 0x07,
  kLayout = 0x08,
  kGroupInfo = 0x0A,
  kFilters = 0x0B,
  kAttribute = 0x0C,
  kSharedTable = 0x0F,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kModified = 0x12,
  kTreeSizes = 0x13,
  kDriver = 0x14,
  kAttributeInfo = 0x15,
};

// The messages of the object header of a dataset or group.
struct Header {
  std::optional<Datatype> type;
  std::optional<std::vector<uint64_t>> dims;
  std::optional<Bytes> fill, old_fill, layout, filters;
  std::optional<std::array<uint64_t, 2>> group;  // addresses of its B-tree and its heap
  bool has_links = false;                        // true for a group that has links instead
};

class Checker {
 public:
  Checker(const FilePart& part, const std::string& name) : in_(part, name) {}

  void check() {
    if (in_.size() < 8 || in_.at(0, 8).text() != std::string_view("\x89HDF\r\n\x1a\n", 8)) return;
    Bytes block = in_.at(8, 88);
    const uint8_t version = block.u8();
    if (version > 1) return;
    block.skip(4);
    const uint8_t offsets = block.u8();
    const uint8_t lengths = block.u8();
    block.skip(1);
    if (offsets != 8 || lengths != 8) block.fail("addresses are not 8 bytes wide");
    leaf_symbols_ = uint64_t{2} * block.u16();
    group_children_ = uint64_t{2} * block.u16();
    block.skip(4);
    if (version == 1) {
      chunk_children_ = uint64_t{2} * block.u16();
      block.skip(2);
    }
    if (block.u64() != 0) block.fail("a base address other than 0");
    block.skip(8);
    const uint64_t end = block.u64();
    if (end > in_.size())
      block.fail("truncated: the superblock gives an end beyond the end of the file");
    in_.set_end(end);
    if (block.u64() != kUndefined) block.fail("a driver information block");
    check_entry(block, nullptr);
    while (!to_do_.empty()) {
      const uint64_t address = to_do_.back();
      to_do_.pop_back();
      // Otherwise a group could contain itself, or there could be so many groups that the walk does
      // not end.
      if (!objects_.insert(address).second)
        block.fail("an object with two names, which is not supported");
      check_object(address);
    }
  }

 private:
  void once(uint64_t address, const Bytes& where) {
    if (!blocks_.insert(address).second) where.fail("a block that is used twice");
  }

  // Checks an entry of a symbol table. `names` is the heap of its group, or null for the root.
  void check_entry(Bytes& entry, const Bytes* names) {
    const uint64_t name = entry.u64();
    if (names != nullptr) check_name(*names, name, entry);
    const uint64_t header = entry.u64();
    const uint32_t cached = entry.u32();
    if (cached != 2) to_do_.push_back(header);
    entry.skip(4);
    const uint64_t tree = entry.u64();
    const uint64_t heap = entry.u64();
    if (cached == 1) {
      cached_groups_[header] = {tree, heap};
    } else if (cached == 2 && names != nullptr) {  // a soft link
      check_name(*names, tree & 0xFFFFFFFF, entry);
    } else if (cached != 0) {
      entry.fail("an unknown kind of link");
    }
  }

  static void check_name(const Bytes& names, uint64_t offset, const Bytes& where) {
    if (offset >= names.text().size() ||
        names.text().find('\0', offset) == std::string_view::npos) {
      where.fail("a name outside its heap");
    }
  }

  void check_group(uint64_t tree, uint64_t heap, const Bytes& where) {
    const auto [it, added] = groups_.emplace(tree, heap);
    if (!added && it->second != heap) where.fail("a group with two heaps");
    if (!added) return;
    const Bytes names = check_local_heap(heap);
    check_group_node(tree, names, std::nullopt);
  }

  Bytes check_local_heap(uint64_t address) {
    Bytes heap = in_.at(address, 32);
    heap.expect("HEAP");
    heap.skip(4);
    const uint64_t size = heap.u64();
    uint64_t free = heap.u64();
    Bytes data = in_.at(heap.u64(), size);
    // The list of free blocks ends with 1.
    for (uint64_t blocks = 0; free != 1; ++blocks) {
      if (blocks > size / 16 || size < 16 || free > size - 16) heap.fail("an invalid free list");
      Bytes block = data.part(free, 16);
      const uint64_t next = block.u64();
      if (block.u64() > size - free) block.fail("a free block outside its heap");
      free = next;
    }
    return data;
  }

  void check_group_node(uint64_t address, const Bytes& names, std::optional<int> level) {
    Bytes node = in_.at(address, 24 + 16 * group_children_ + 8);
    once(address, node);
    const TreeHead head = check_tree_head(node, 0, group_children_, level);
    check_name(names, node.u64(), node);
    for (uint64_t i = 0; i < head.children; ++i) {
      const uint64_t child = node.u64();
      check_name(names, node.u64(), node);
      if (head.level > 0) {
        check_group_node(child, names, head.level - 1);
      } else {
        check_symbols(child, names);
      }
    }
  }

  void check_symbols(uint64_t address, const Bytes& names) {
    Bytes node = in_.at(address, 8 + 40 * leaf_symbols_);
    once(address, node);
    node.expect("SNOD");
    if (node.u8() != 1) node.fail("a symbol table node of unknown version");
    node.skip(1);
    const uint16_t count = node.u16();
    if (count > leaf_symbols_) node.fail("more symbols than fit into their node");
    for (int i = 0; i < count; ++i) check_entry(node, &names);
  }

  struct TreeHead {
    int level;
    uint64_t children;
  };
  static TreeHead check_tree_head(Bytes& node, uint8_t type, uint64_t capacity,
                                  std::optional<int> level) {
    constexpr int kDeepest = 16;
    node.expect("TREE");
    if (node.u8() != type) node.fail("a B-tree of an unexpected type");
    const TreeHead head = {.level = node.u8(), .children = node.u16()};
    if (head.level != level.value_or(head.level) || head.level > kDeepest) {
      node.fail("a B-tree node at the wrong level");
    }
    if (head.children > capacity) node.fail("more children than fit into their node");
    node.skip(16);
    return head;
  }

  void check_object(uint64_t address) {
    // Newer object headers have a checksum, so the library checks them.
    const auto cached = cached_groups_.find(address);
    if (in_.at(address, 4).text() == "OHDR") {
      if (cached != cached_groups_.end())
        in_.at(address, 4).fail("a group in both the old and the new format");
      return;
    }
    Bytes head = in_.at(address, 16);
    if (head.u8() != 1) head.fail("an object header of unknown version");
    head.skip(1);
    uint64_t left = head.u16();
    head.skip(4);
    const uint32_t size = head.u32();
    std::vector<Bytes> chunks = {in_.at(address + 16, size)};
    once(address + 16, head);
    Header header;
    while (!chunks.empty()) {
      Bytes chunk = chunks.back();
      chunks.pop_back();
      if (chunk.left() == 0) head.fail("an empty object header");
      for (; chunk.left() > 0; --left) {
        if (left == 0) chunk.fail("more messages than the object header declares");
        const uint16_t type = chunk.u16();
        const uint16_t length = chunk.u16();
        const uint8_t flags = chunk.u8();
        chunk.skip(3);
        if (length % 8 != 0) chunk.fail("a message length that is not a multiple of 8");
        Bytes body = chunk.take(length);
        if ((flags & 2) != 0) body.fail("a shared message");
        if ((flags & ~5) != 0) body.fail("a message with unsupported flags");
        if (type == kContinuation) {
          const uint64_t next = body.u64();
          chunks.push_back(in_.at(next, body.u64()));
          once(next, body);
        } else {
          check_message(type, body, header);
        }
      }
    }
    if (left != 0) head.fail("fewer messages than the object header declares");
    const bool is_group = header.group || header.has_links;
    if (is_group && (header.layout || header.dims)) head.fail("a group with values");
    if (header.group && header.has_links) head.fail("a group with both links and a symbol table");
    if (header.group && !owned_.insert((*header.group)[0]).second) {
      head.fail("members that belong to two groups");
    }
    // When a group is converted to links, its entry keeps the old addresses, which are no longer
    // valid.
    if (cached != cached_groups_.end() && !header.has_links && header.group != cached->second) {
      head.fail("a group with two heaps");
    }
    if (header.layout) check_dataset(header, head);
  }

  template <class T>
  static void set_once(std::optional<T>& field, T value, const Bytes& where) {
    if (field) where.fail("a repeated message");
    field = std::move(value);
  }

  void check_message(uint16_t type, Bytes body, Header& header) {
    switch (type) {
      case kDataspace:
        return set_once(header.dims, check_dataspace(body), body);
      case kDatatype:
        return set_once(header.type, check_datatype(body), body);
      case kFill:
        return set_once(header.fill, body, body);
      case kOldFill:
        return set_once(header.old_fill, body, body);
      case kLayout:
        return set_once(header.layout, body, body);
      case kFilters:
        return set_once(header.filters, body, body);
      case kAttribute:
        return check_attribute(body);
      case kSymbolTable: {
        const uint64_t tree = body.u64();
        const uint64_t heap = body.u64();
        set_once(header.group, {tree, heap}, body);
        return check_group(tree, heap, body);
      }
      case kExternal:
        body.fail("values in another file");
      case kLinkInfo:
        header.has_links = true;
        for (Bytes& link : check_dense_links(in_, body)) to_do_.push_back(check_link(link));
        return;
      case kLink:
        header.has_links = true;
        to_do_.push_back(check_link(body));
        return;
      case kGroupInfo:
        if (body.u8() != 0) body.fail("a group of unknown version");
        return;
      case kSharedTable:
      case kTreeSizes:
      case kDriver:
      case kAttributeInfo:
        body.fail("a message that this version of the format does not have");
      case kModified:
        if (body.left() < 8 || body.u8() != 1) body.fail("a modification time of unsupported form");
        return;
      case kNil:
        return;
      default:
        body.fail("a message of unknown kind");
    }
  }

  void check_attribute(Bytes body) {
    const uint8_t version = body.u8();
    const uint8_t flags = body.u8();
    if (version < 1 || version > 3) body.fail("an attribute of unknown version");
    if (version > 1 && flags != 0) body.fail("a shared message");
    const uint16_t name_size = body.u16();
    const uint16_t type_size = body.u16();
    const uint16_t space_size = body.u16();
    if (version == 3) body.skip(1);
    const auto take = [&](uint16_t size) {
      Bytes part = body.take(size);
      if (version == 1) body.skip((8 - size % 8) % 8);
      return part;
    };
    const Bytes name = take(name_size);
    if (name.text().find('\0') != size_t{name_size} - 1) name.fail("an unterminated name");
    Bytes type_bytes = take(type_size);
    Bytes space_bytes = take(space_size);
    const Datatype type = check_datatype(type_bytes);
    const uint64_t count = count_of(check_dataspace(space_bytes), type.size, body);
    Bytes values = body.take(count * type.size);
    if (type.variable_string) check_strings(values, count);
  }

  // Returns the number of elements of `dims`. Fails if the number of their bytes, `size` each,
  // overflows.
  static uint64_t count_of(const std::vector<uint64_t>& dims, uint64_t size, const Bytes& where) {
    uint64_t count = 1, bytes = 0;
    for (uint64_t dim : dims) {
      if (__builtin_mul_overflow(count, dim, &count)) where.fail("too many elements");
    }
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > INT64_MAX) {
      where.fail("too many elements");
    }
    return count;
  }

  void check_strings(Bytes values, uint64_t count) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t length = values.u32();
      const uint64_t heap = values.u64();
      const uint32_t index = values.u32();
      if (heap == 0 && length == 0) continue;
      const auto& sizes = global_heap(heap);
      const auto it = sizes.find(index);
      if (it == sizes.end() || it->second != length)
        values.fail("a string that is not in its heap");
      total += length;
      if (total > in_.size()) values.fail("strings longer than the file");
    }
  }

  // Returns the size of each object of a global heap collection, by its index.
  const std::unordered_map<uint32_t, uint64_t>& global_heap(uint64_t address) {
    if (const auto it = heaps_.find(address); it != heaps_.end()) return it->second;
    Bytes head = in_.at(address, 16);
    head.expect("GCOL");
    if (head.u8() != 1) head.fail("a heap of unknown version");
    head.skip(3);
    const uint64_t size = head.u64();
    if (size < 16) head.fail("an empty heap");
    Bytes heap = in_.at(address + 16, size - 16);
    std::unordered_map<uint32_t, uint64_t> sizes;
    while (heap.left() >= 16) {
      const uint64_t left = heap.left();
      const uint16_t index = heap.u16();
      heap.skip(6);
      const uint64_t length = heap.u64();
      if (index == 0) {
        if (length != left) heap.fail("free space that does not extend to the end of the heap");
        break;
      }
      if (!sizes.emplace(index, length).second) heap.fail("a repeated index");
      const Bytes object = heap.take(length);
      heap.skip((8 - length % 8) % 8);
    }
    return heaps_[address] = std::move(sizes);
  }

  void check_dataset(const Header& header, const Bytes& where) {
    if (!header.type || !header.dims) where.fail("a dataset without type or shape");
    const Datatype& type = *header.type;
    if (header.fill) check_fill(*header.fill, type);
    if (header.old_fill) check_fill_value(*header.old_fill, type);
    const bool filtered = header.filters && check_filters(*header.filters, type);
    Bytes layout = *header.layout;
    if (layout.u8() != 3) layout.fail("a layout of unsupported version");
    const uint8_t kind = layout.u8();
    const uint64_t count = count_of(*header.dims, type.size, layout);
    const uint64_t bytes = count * type.size;
    std::optional<Bytes> values;
    if (kind == 0) {
      const uint16_t stored = layout.u16();
      if (stored != bytes) layout.fail("a size that does not match the shape");
      values = layout.take(stored);
    } else if (kind == 1) {
      const uint64_t address = layout.u64();
      const uint64_t stored = layout.u64();
      if (address == kUndefined) return;
      if (stored != bytes) layout.fail("a size that does not match the shape");
      in_.check_range(address, bytes);
      if (type.variable_string) values = in_.at(address, bytes);
    } else if (kind == 2) {
      if (type.variable_string) layout.fail("strings of variable length in chunks");
      return check_chunks(layout, header.dims->size(), type, filtered);
    } else {
      layout.fail("an unknown layout");
    }
    if (filtered) layout.fail("filters without chunks");
    if (type.variable_string) check_strings(*values, count);
  }

  static void check_fill_value(Bytes fill, const Datatype& type) {
    const uint32_t size = fill.u32();
    if (size == 0 || size == 0xFFFFFFFF) return;
    if (size != type.size || type.variable_string)
      fill.fail("a fill value whose type differs from that of the dataset");
    fill.skip(size);
  }

  static void check_fill(Bytes fill, const Datatype& type) {
    const uint8_t version = fill.u8();
    if (version == 1 || version == 2) {
      fill.skip(2);
      const bool defined = fill.u8() != 0;
      if (version == 1 || defined) check_fill_value(fill, type);
    } else if (version == 3) {
      if ((fill.u8() & 0x20) != 0) check_fill_value(fill, type);
    } else {
      fill.fail("a fill value of unknown version");
    }
  }

  // Returns true if there are any filters. Only deflate, shuffle and fletcher32 are accepted; the
  // library supports them.
  static bool check_filters(Bytes filters, const Datatype& type) {
    const uint8_t version = filters.u8();
    const uint8_t count = filters.u8();
    if (version < 1 || version > 2 || count > 32) filters.fail("filters of unknown version");
    if (version == 1) filters.skip(6);
    for (int i = 0; i < count; ++i) {
      const uint16_t id = filters.u16();
      if (id < 1 || id > 3) filters.fail("a filter other than deflate, shuffle and fletcher32");
      const uint16_t name = version == 1 ? filters.u16() : uint16_t{0};
      filters.skip(2);
      const uint16_t values = filters.u16();
      filters.skip((name + 7) / 8 * 8);
      if (values != (id == 3 ? 0 : 1)) filters.fail("a filter with unsupported settings");
      const uint32_t setting = values == 1 ? filters.u32() : 0;
      if (id == 2 && setting != type.size)
        filters.fail("a shuffle filter whose element size differs from that of the dataset");
      if (version == 1 && values % 2 == 1) filters.skip(4);
    }
    return count > 0;
  }

  void check_chunks(Bytes layout, size_t rank, const Datatype& type, bool filtered) {
    const uint8_t dimensions = layout.u8();
    if (dimensions != rank + 1) layout.fail("chunks of a rank that does not match the shape");
    const uint64_t tree = layout.u64();
    uint64_t bytes = 1;
    uint32_t dim = 0;
    for (size_t i = 0; i <= rank; ++i) {
      dim = layout.u32();
      if (dim == 0 || bytes > UINT32_MAX / dim) layout.fail("chunks of an impossible size");
      bytes *= dim;
    }
    if (dim != type.size) layout.fail("chunks of an element size that does not match the type");
    if (tree == kUndefined) return;
    check_chunk_node(tree, {.dimensions = dimensions, .bytes = bytes, .filtered = filtered},
                     std::nullopt);
  }

  struct Chunks {
    uint8_t dimensions;
    uint64_t bytes;
    bool filtered;
  };
  void check_chunk_node(uint64_t address, const Chunks& chunks, std::optional<int> level) {
    const uint64_t key = 8 + 8 * uint64_t{chunks.dimensions};
    Bytes node = in_.at(address, 24 + (key + 8) * chunk_children_ + key);
    once(address, node);
    const TreeHead head = check_tree_head(node, 1, chunk_children_, level);
    for (uint64_t i = 0; i < head.children; ++i) {
      const uint32_t stored = node.u32();
      const uint32_t skipped_filters = node.u32();
      node.skip(8 * uint64_t{chunks.dimensions});
      const uint64_t child = node.u64();
      if (head.level > 0) {
        check_chunk_node(child, chunks, head.level - 1);
        continue;
      }
      if (skipped_filters != 0) node.fail("a chunk that skips filters");
      if (!chunks.filtered && stored != chunks.bytes) node.fail("a chunk of the wrong size");
      in_.check_range(child, stored);
    }
  }

  Input in_;
  uint64_t leaf_symbols_ = 0, group_children_ = 0, chunk_children_ = 64;
  std::vector<uint64_t> to_do_;                    // addresses of object headers to check
  std::set<uint64_t> objects_, blocks_;            // addresses visited
  std::set<uint64_t> owned_;                       // B-trees that belong to a group
  std::unordered_map<uint64_t, uint64_t> groups_;  // groups visited: B-tree -> heap
  // B-tree and heap of groups according to entries of symbol tables, by the address of the object
  // header.
  std::unordered_map<uint64_t, std::array<uint64_t, 2>> cached_groups_;
  std::unordered_map<uint64_t, std::unordered_map<uint32_t, uint64_t>> heaps_;
};

}  // namespace

void check_hdf5_structure(const FilePart& part, const std::string& name) {
  Checker(part, name).check();
}

}  // namespace keel
