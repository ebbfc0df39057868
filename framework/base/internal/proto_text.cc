#include <keel/framework/base/internal/proto_text.h>

#include <absl/strings/string_view.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <memory>

#include <keel/framework/base/errors.h>

namespace keel::internal {
namespace {

namespace pb = google::protobuf;

constexpr int kMostDepth = 20;

// Keeps the first error of a text.
class FirstError : public pb::io::ErrorCollector {
 public:
#if GOOGLE_PROTOBUF_VERSION < 4022000
  void AddError(int line, int column, const std::string& message) override {
    keep(line, column, message);
  }
#else
  void RecordError(int line, int column, absl::string_view message) override {
    keep(line, column, std::string(message));
  }
#endif
  std::string text;

 private:
  void keep(int line, int column, const std::string& message) {
    if (text.empty()) text = str("line ", line + 1, ", column ", column + 1, ": ", message);
  }
};

// The messages of a file.
class Messages {
 public:
  explicit Messages(ProtoDescriptors descriptors) {
    pb::FileDescriptorSet files;
    const bool parsed =
        files.ParseFromArray(descriptors.data(), static_cast<int>(descriptors.size()));
    if (!parsed || files.file_size() != 1 || pool_.BuildFile(files.file(0)) == nullptr) {
      throw ValueError("these are not the descriptors of one .proto file");
    }
  }

  std::unique_ptr<pb::Message> make(const char* name) {
    const pb::Descriptor* const type = pool_.FindMessageTypeByName(name);
    if (type == nullptr) throw ValueError("there is no message ", name);
    return std::unique_ptr<pb::Message>(factory_.GetPrototype(type)->New());
  }

 private:
  pb::DescriptorPool pool_;
  pb::DynamicMessageFactory factory_{&pool_};
};

}  // namespace

std::string wire_format_from_text(ProtoDescriptors descriptors, const char* name,
                                  const std::string& text) {
  Messages messages(descriptors);
  const std::unique_ptr<pb::Message> message = messages.make(name);
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(kMostDepth);
  if (!parser.ParseFromString(text, message.get())) throw ValueError(error.text);
  return message->SerializeAsString();
}

std::string text_from_wire_format(ProtoDescriptors descriptors, const char* name,
                                  const std::string& bytes) {
  Messages messages(descriptors);
  const std::unique_ptr<pb::Message> message = messages.make(name);
  if (!message->ParseFromString(bytes)) {
    throw ValueError(bytes.size(), " bytes are not a serialized ", name);
  }
  std::string out;
  pb::TextFormat::PrintToString(*message, &out);
  return out;
}

}  // namespace keel::internal
