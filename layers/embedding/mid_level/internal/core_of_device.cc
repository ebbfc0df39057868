#include <keel/layers/embedding/mid_level/internal/core_of_device.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

[[noreturn]] void refuse(const std::string& device, const std::string& why) {
  throw ValueError("TPUEmbedding.enqueue: device must be like /task:0/device:TPU:2, received '",
                   device, "'", why);
}

int number(const std::string& device, const std::string& digits) {
  int out = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (error != std::errc() || end != digits.data() + digits.size() || out < 0) refuse(device, "");
  return out;
}

// Splits "/key:value/..." into its parts. An older form of the device part is "/tpu:2".
std::map<std::string, std::string> parts_of(const std::string& device) {
  std::map<std::string, std::string> parts;
  size_t at = 0;
  while (at < device.size()) {
    if (device[at] != '/') refuse(device, "");
    const size_t end = std::min(device.find('/', at + 1), device.size());
    const std::string part = device.substr(at + 1, end - at - 1);
    const size_t colon = part.find(':');
    if (colon == std::string::npos) refuse(device, "");
    std::string key = part.substr(0, colon);
    std::string value = part.substr(colon + 1);
    if (key != "job" && key != "replica" && key != "task" && key != "device") {
      value = absl::StrCat(key, ":", value);
      key = "device";
    }
    if (!parts.emplace(key, value).second) refuse(device, "");
    at = end;
  }
  return parts;
}

}  // namespace

int core_of_device(const std::string& device, const CoresOfHosts& cores) {
  const std::map<std::string, std::string> parts = parts_of(device);
  const auto kind = parts.find("device");
  if (kind == parts.end()) refuse(device, "");
  const size_t colon = kind->second.find(':');
  if (colon == std::string::npos || !absl::EqualsIgnoreCase(kind->second.substr(0, colon), "TPU")) {
    refuse(device, ", which is not a TPU");
  }
  const int core = number(device, kind->second.substr(colon + 1));
  const auto task = parts.find("task");
  const std::optional<int> host =
      task == parts.end() ? std::nullopt : std::optional(number(device, task->second));
  const int most = host ? cores.cores_of_each : cores.hosts * cores.cores_of_each;
  if (core >= most || host.value_or(0) >= cores.hosts) {
    refuse(device,
           absl::StrCat("; there are ", cores.hosts, " hosts of ", cores.cores_of_each, " cores"));
  }
  return host.value_or(0) * cores.cores_of_each + core;
}

}  // namespace keel
