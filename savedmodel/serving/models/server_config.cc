#include <keel/savedmodel/serving/models/server_config.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <savedmodel/serving/models/server_config.descriptors.h>
#include <savedmodel/serving/models/server_config.pb.h>
#include <system_error>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/proto_text.h>
#include <keel/savedmodel/serving/base/utf8.h>

namespace keel::serving {
namespace {

template <class Message>
Message parsed(const std::string& text, const std::string& path) {
  Message out;
  try {
    const std::string name = out.GetTypeName();
    out.ParseFromString(
        internal::wire_format_from_text(descriptors::server_config, name.c_str(), text));
  } catch (const ValueError& error) {
    throw ValueError(path, ": ", error.what());
  }
  return out;
}

VersionPolicy policy_from(const proto::VersionPolicy& policy) {
  VersionPolicy out;
  if (policy.has_all()) out.kind = VersionPolicy::Kind::kAll;
  if (policy.has_latest()) {
    out.num_versions = std::max<int64_t>(policy.latest().num_versions(), 1);
  }
  if (policy.has_specific()) {
    out.kind = VersionPolicy::Kind::kSpecific;
    out.versions.insert(policy.specific().versions().begin(), policy.specific().versions().end());
    if (out.versions.empty()) throw ValueError("specific: versions must not be empty");
  }
  return out;
}

ModelConfig model_from(const proto::ModelConfig& config, const std::string& path,
                       std::vector<std::string>& warnings) {
  constexpr const char* kPlatforms[] = {"", "keel", "keras", "tensorflow"};
  check_name("model name", config.name());
  if (config.base_path().empty()) throw ValueError("base_path must not be empty");
  if (config.has_model_type()) throw ValueError("model_type is not supported; use model_platform");
  if (std::ranges::find(kPlatforms, config.model_platform()) == std::end(kPlatforms)) {
    throw ValueError("model_platform must be keel, keras or tensorflow, received '",
                     config.model_platform(), "'");
  }
  if (config.has_logging_config()) {
    warnings.push_back(absl::StrCat("model ", config.name(), ": logging_config is ignored"));
  }
  ModelConfig out = {.name = config.name(), .policy = policy_from(config.model_version_policy())};
  const std::filesystem::path base(config.base_path());
  out.base_path = base.is_absolute() ? config.base_path()
                                     : (std::filesystem::path(path).parent_path() / base).string();
  for (const auto& [label, version] : config.version_labels()) {
    check_name("label", label);
    if (version < 0) throw ValueError("label '", label, "' has the negative version ", version);
    out.labels.emplace(label, version);
  }
  return out;
}

int64_t at_least(const char* field, int64_t value, int64_t least) {
  if (value < least) throw ValueError(field, " must be at least ", least, ", received ", value);
  return value;
}

// Returns make(), and adds the file and the place in it to its errors.
template <class Make>
auto in_place(const std::string& path, const std::string& place, Make make) {
  try {
    return make();
  } catch (const ValueError& error) {
    throw ValueError(path, ": ", place, error.what());
  }
}

}  // namespace

void check_name(const char* what, const std::string& name) {
  constexpr size_t kMostBytes = 255;
  const bool controls = std::ranges::any_of(
      name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  if (name.empty() || name.size() > kMostBytes || controls || !is_utf8(name) ||
      name.find_first_of("/:") != std::string::npos) {
    throw ValueError("a ", what, " must have 1 to 255 bytes of UTF-8 without control characters, ",
                     "'/' and ':', received '", name, "'");
  }
}

std::vector<ModelConfig> parse_model_configs(const std::string& text, const std::string& path,
                                             std::vector<std::string>& warnings) {
  const auto config = parsed<proto::ModelServerConfig>(text, path);
  if (config.has_custom_model_config()) {
    throw ValueError(path, ": custom_model_config is not supported; use model_config_list");
  }
  // An empty list would unload all models, and is most likely a file that is being written.
  if (config.model_config_list().config().empty()) {
    throw ValueError(path, ": no model is configured; add model_config_list { config { ... } }");
  }
  std::vector<ModelConfig> out;
  int number = 0;
  for (const proto::ModelConfig& model : config.model_config_list().config()) {
    const std::string place = absl::StrCat("config ", ++number, " (name '", model.name(), "'): ");
    in_place(path, place, [&] {
      ModelConfig made = model_from(model, path, warnings);
      const bool twice = std::ranges::any_of(
          out, [&](const ModelConfig& other) { return other.name == made.name; });
      if (twice) throw ValueError("the name is used twice");
      out.push_back(std::move(made));
      return 0;
    });
  }
  return out;
}

MonitoringConfig parse_monitoring_config(const std::string& text, const std::string& path) {
  const auto config = parsed<proto::MonitoringConfig>(text, path);
  MonitoringConfig out;
  // As in TensorFlow Serving, a configuration that does not say "enable: true" is off.
  if (config.has_prometheus_config()) out.enable = config.prometheus_config().enable();
  if (!config.prometheus_config().path().empty()) out.path = config.prometheus_config().path();
  if (out.path[0] != '/') {
    throw ValueError(path, ": prometheus_config.path must begin with '/', received '", out.path,
                     "'");
  }
  return out;
}

BatchingOptions parse_batching_parameters(const std::string& text, const std::string& path,
                                          int threads) {
  const auto config = parsed<proto::BatchingParameters>(text, path);
  return in_place(path, "", [&] {
    BatchingOptions out = {.num_batch_threads = threads};
    const auto take = [](bool given, const char* field, int64_t value, int64_t least, int64_t& to) {
      if (given) to = at_least(field, value, least);
    };
    take(config.has_max_batch_size(), "max_batch_size", config.max_batch_size().value(), 1,
         out.max_batch_size);
    take(config.has_batch_timeout_micros(), "batch_timeout_micros",
         config.batch_timeout_micros().value(), 0, out.batch_timeout_micros);
    take(config.has_num_batch_threads(), "num_batch_threads", config.num_batch_threads().value(), 1,
         out.num_batch_threads);
    take(config.has_max_enqueued_batches(), "max_enqueued_batches",
         config.max_enqueued_batches().value(), 1, out.max_enqueued_batches);
    if (config.has_enable_large_batch_splitting()) {
      out.enable_large_batch_splitting = config.enable_large_batch_splitting().value();
    }
    out.max_execution_batch_size = out.max_batch_size;
    take(config.has_max_execution_batch_size(), "max_execution_batch_size",
         config.max_execution_batch_size().value(), 1, out.max_execution_batch_size);
    if (out.max_execution_batch_size > out.max_batch_size) {
      throw ValueError("max_execution_batch_size must not be larger than max_batch_size, ",
                       out.max_batch_size, ", received ", out.max_execution_batch_size);
    }
    if (config.has_max_execution_batch_size() && !out.enable_large_batch_splitting) {
      throw ValueError("max_execution_batch_size needs enable_large_batch_splitting");
    }
    int64_t before = 0;
    for (int64_t size : config.allowed_batch_sizes()) {
      if (size <= before) throw ValueError("allowed_batch_sizes must ascend, received ", size);
      before = size;
    }
    if (before != 0 && before != out.max_execution_batch_size) {
      throw ValueError("the last of allowed_batch_sizes must be max_batch_size, ",
                       out.max_execution_batch_size, ", received ", before);
    }
    return out;
  });
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw IoError(path, ": cannot be opened: ", std::generic_category().message(errno));
  }
  std::string out((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw IoError(path, ": cannot be read");
  return out;
}

}  // namespace keel::serving
