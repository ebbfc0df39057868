// Devices: the host and the numbered cores of a simulated accelerator, which share one memory. A
// tensor records the device on which it was made, because a program for a real accelerator must not
// mix devices. Functions that take only host inputs, such as tpu::TPUEmbedding::enqueue, throw for
// tensors of a core.
#pragma once

#include <string>

namespace keel {

// The host or one core.
struct Device {
  int core = -1;  // -1 is the host

  // Returns true for the host.
  bool is_host() const { return core < 0; }
  std::string name() const;  // "/device:CPU:0" or "/device:TPU:<core>"
  friend bool operator==(const Device&, const Device&) = default;
};

// Returns the device on which this thread makes tensors: the host, or the device of the innermost
// DeviceScope.
Device current_device();

// While a DeviceScope is alive, this thread makes tensors on `device`. Scopes nest.
class DeviceScope {
 public:
  // Makes `device` the device of this thread until the object is destroyed.
  explicit DeviceScope(Device device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const Device previous_;
};

}  // namespace keel
