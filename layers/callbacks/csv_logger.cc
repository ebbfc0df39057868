#include <keel/distribute/process_group.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/base/file_path_internal.h>
#include <keel/framework/base/internal/text.h>
#include <keel/layers/callbacks/logging.h>

namespace keel {
void CSVLoggerCallback::on_train_begin() {
  if (distribute::processes().rank() != 0) return;
  names_.clear();
  std::error_code missing;
  const auto size = std::filesystem::file_size(options_.filename, missing);
  header_written_ = options_.append && !missing && size > 0;
  file_.open(options_.filename, options_.append ? std::ios::app : std::ios::trunc);
  if (!file_) {
    throw IoError("CSVLogger: cannot write the file ", options_.filename.string(), ": ",
                  internal::system_message());
  }
}

void CSVLoggerCallback::on_epoch_end(int64_t epoch, Logs& logs) {
  if (distribute::processes().rank() != 0) return;
  if (names_.empty()) {
    bool validated = false;
    for (const auto& [name, value] : logs) {
      names_.push_back(name);
      validated = validated || name.starts_with("val_");
    }
    // Adds validation columns if validation first runs in a later epoch.
    const size_t trained = names_.size();
    for (size_t i = 0; params().validates && !validated && i < trained; ++i) {
      names_.push_back("val_" + names_[i]);
    }
  }
  std::string text;
  if (!header_written_) {
    text += "epoch";
    for (const std::string& name : names_) text += options_.separator + name;
    text += '\n';
    header_written_ = true;
  }
  text += std::to_string(epoch);
  for (const std::string& name : names_) {
    const auto it = logs.find(name);
    text += options_.separator + (it == logs.end() ? std::string("NA") : number_text(it->second));
  }
  file_ << text << '\n' << std::flush;
  if (!file_) {
    throw IoError("CSVLogger: cannot write the file ", options_.filename.string(), ": ",
                  internal::system_message());
  }
}

void CSVLoggerCallback::on_train_end(const Logs&) {
  if (!file_.is_open()) return;
  file_.close();
  if (!file_) {
    throw IoError("CSVLogger: cannot write the file ", options_.filename.string(), ": ",
                  internal::system_message());
  }
}

}  // namespace keel
