// Protobuf's text format for messages whose generated classes are lite.
#pragma once

#include <span>
#include <string>

namespace keel::internal {

// Generated classes with descriptors register them in a pool of the process, which aborts when two
// copies of Keel, such as two plugins that contain it, register the same names. So all classes of
// Keel are lite, and these functions build a pool of their own. They are for configurations: each
// call builds the pool again.
//
// `descriptors` is a serialized FileDescriptorSet of one file without imports, which the build
// makes of the .proto file, and `name` the full name of the message.
using ProtoDescriptors = std::span<const unsigned char>;

// Throws ValueError "line L, column C: ..." if the text is not such a message.
std::string wire_format_from_text(ProtoDescriptors descriptors, const char* name,
                                  const std::string& text);
// Throws ValueError if `bytes` are not such a message.
std::string text_from_wire_format(ProtoDescriptors descriptors, const char* name,
                                  const std::string& bytes);

}  // namespace keel::internal
