#include <keel/distribute/dynamic/internal/initial_rows.h>

#include <algorithm>
#include <utility>

#include <keel/distribute/dynamic/internal/key_functions.h>

namespace keel::distribute {
namespace {

// The purposes of the streams that are derived from the table's stream.
constexpr uint64_t kRowStream = 1, kFallbackStream = 2, kAdmissionStream = 3;

}  // namespace

InitialRows::InitialRows(int64_t dim, Initializer initializer, Initializer fallback,
                         RandomStream stream)
    : dim_(dim),
      initializer_(std::move(initializer)),
      fallback_(std::move(fallback)),
      stream_(stream) {
  const InitializerFunction& function = initializer_.function();
  if (function.class_name() == "RowIdInitializer") {
    row_id_offset_ = function.get_config()["offset"].integer();
  }
}

RandomStream InitialRows::stream_for(uint64_t kind, uint64_t number) const {
  return {.seed = stream_.seed,
          .purpose = kernels::mixed_key(kernels::mixed_key(stream_.purpose, kind), number)};
}

void InitialRows::fill_from(const Initializer& initializer, const RandomStream& stream,
                            std::span<float> out) const {
  initializer.function().fill(out, 0, {1, dim_}, stream);
}

void InitialRows::fill(int64_t key, std::span<float> out) const {
  if (row_id_offset_) {
    // Unsigned, because the sum wraps around for extreme keys.
    const uint64_t sum = static_cast<uint64_t>(*row_id_offset_) + static_cast<uint64_t>(key);
    std::ranges::fill(out, static_cast<float>(static_cast<int64_t>(sum)));
    return;
  }
  fill_from(initializer_, stream_for(kRowStream, stream_key(key)), out);
}

void InitialRows::fill(const std::string& key, std::span<float> out) const {
  fill_from(initializer_, stream_for(kRowStream, stream_key(key)), out);
}

void InitialRows::fill_fallback(int64_t row, std::span<float> out) const {
  fill_from(fallback_, stream_for(kFallbackStream, static_cast<uint64_t>(row)), out);
}

double InitialRows::draw(uint64_t stream_key, int64_t update) const {
  const uint32_t word =
      stream_for(kAdmissionStream, stream_key).bits(static_cast<uint64_t>(update))[0];
  return word * 0x1p-32;
}

}  // namespace keel::distribute
