// Devices: the host, and the numbered cores of a simulated accelerator. All share one memory; where
// a tensor was made is kept because programs for real accelerators must not mix the two up, and
// code that takes host inputs only (tpu::TPUEmbedding::enqueue) tells them of it.
#pragma once

#include <string>

namespace keel {

struct Device {
  int core = -1;  // -1: the host

  bool is_host() const { return core < 0; }
  std::string name() const;  // "/device:CPU:0" or "/device:TPU:<core>"
  friend bool operator==(const Device&, const Device&) = default;
};

// Where tensors made on this thread are. The host unless a DeviceScope says otherwise.
Device current_device();

// While alive, this thread makes tensors on `device`.
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
