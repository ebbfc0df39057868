// Devices: the host and the numbered cores of a simulated accelerator. All of them share one
// memory. A tensor records the device on which it was made, because programs for real accelerators
// must not mix devices: code that takes only host inputs (tpu::TPUEmbedding::enqueue) reports a
// mismatch.
#pragma once

#include <string>

namespace keel {

// A device.
struct Device {
  int core = -1;  // -1 is the host

  // True for the host.
  bool is_host() const { return core < 0; }
  std::string name() const;  // "/device:CPU:0" or "/device:TPU:<core>"
  friend bool operator==(const Device&, const Device&) = default;
};

// Returns the device on which this thread makes tensors: the host, or the device of the innermost
// DeviceScope.
Device current_device();

// While an object exists, this thread makes tensors on `device`.
class DeviceScope {
 public:
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const Device previous_;
};

}  // namespace keel
