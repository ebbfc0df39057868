#include <keel/framework/device.h>

namespace keel {
namespace {

thread_local Device current;

}  // namespace

std::string Device::name() const {
  return is_host() ? "/device:CPU:0" : "/device:TPU:" + std::to_string(core);
}

Device current_device() { return current; }

DeviceScope::DeviceScope(Device device) : previous_(current) { current = device; }

DeviceScope::~DeviceScope() { current = previous_; }

}  // namespace keel
