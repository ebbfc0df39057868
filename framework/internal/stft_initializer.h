// The initializer "STFT" of Keras: the kernel of a convolution that computes one part of the
// short-time Fourier transform.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/framework/initializers.h>

namespace keel::internal {

// Keras's arguments of STFT.
struct STFTOptions {
  std::string side = "real";                       // the part: "real" or "imag"
  std::optional<std::string> window = "hann";      // a name of cosine_window(); none: all 1
  std::optional<std::string> scaling = "density";  // for the window: "density", "spectrum", or none
  bool periodic = false;                           // see cosine_window()
  static constexpr void fields(auto& self, auto&& field) {
    field("side", self.side);
    field("window", self.window);
    field("periodic", self.periodic);
    field("scaling", self.scaling);
  }
};

// Returns the initializer. Throws ValueError for other names of side, window or scaling. It fills
// shapes [frame_length, 1, bins], and throws ValueError for other ranks.
std::shared_ptr<InitializerFunction> stft_initializer(const STFTOptions& options);

}  // namespace keel::internal
