#include <keel/layers/callbacks/internal/event_file.h>

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <keel/layers/callbacks/internal/png.h>

#include "layers/callbacks/event.pb.h"

namespace keel {
namespace {

constexpr const char* kFileVersion = "brain.Event:2";

std::string host_name() {
  std::array<char, 256> name = {};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
  std::string out = name.data();
  std::ranges::replace(out, '/', '_');
  return out;
}

// Returns a path that is unique among the processes of this host and within this process.
std::filesystem::path new_path(const std::filesystem::path& folder) {
  static std::atomic<int64_t> count = 0;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw IoError("TensorBoard: cannot create the folder ", folder.string(), ": ", error.message());
  }
  return folder / absl::StrCat("events.out.tfevents.", absl::ToUnixSeconds(absl::Now()), ".",
                               host_name(), ".", ::getpid(), ".", count++);
}

// Ascending limits; the last one is above all finite values.
std::vector<double> make_bucket_limits() {
  constexpr double kFirst = 1e-12, kEnd = 1e20, kGrowth = 1.1;
  std::vector<double> positive;
  double next = kFirst;
  while (next < kEnd) {
    positive.push_back(next);
    next *= kGrowth;
  }
  positive.push_back(std::numeric_limits<double>::max());
  std::vector<double> out;
  for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) out.push_back(-*limit);
  out.push_back(0);
  out.insert(out.end(), positive.begin(), positive.end());
  return out;
}

const std::vector<double>& bucket_limits() {
  static const std::vector<double> kLimits = make_bucket_limits();
  return kLimits;
}

// Merges runs of empty buckets into their last bucket.
void add_buckets(const std::vector<int64_t>& counts, proto::HistogramProto& out) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool last_of_run = i + 1 == counts.size() || counts[i + 1] > 0;
    if (counts[i] == 0 && !last_of_run) continue;
    out.add_bucket_limit(bucket_limits()[i]);
    out.add_bucket(static_cast<double>(counts[i]));
  }
}

void fill(const Tensor& values, proto::HistogramProto& out) {
  const std::vector<double>& limits = bucket_limits();
  std::vector<int64_t> counts(limits.size());
  double least = std::numeric_limits<double>::max(), most = -least, sum = 0, squares = 0;
  int64_t number = 0;
  const Tensor doubles = values.cast(DType::kFloat64);
  for (const double value : doubles.data<double>()) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
    squares += value * value;
    ++number;
    const auto above = std::ranges::upper_bound(limits, value);
    ++counts[std::min<size_t>(above - limits.begin(), limits.size() - 1)];
  }
  out.set_num(static_cast<double>(number));
  if (number == 0) return;
  out.set_min(least);
  out.set_max(most);
  out.set_sum(sum);
  out.set_sum_squares(squares);
  add_buckets(counts, out);
}

void write(const proto::Event& event, data::TFRecordWriter& to) {
  to.write(event.SerializeAsString());
}

proto::Event event_at(int64_t step) {
  proto::Event out;
  out.set_wall_time(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  out.set_step(step);
  return out;
}

}  // namespace

EventFile::EventFile(const std::filesystem::path& folder)
    : path_(new_path(folder)), records_(path_) {
  proto::Event first = event_at(0);
  first.set_file_version(kFileVersion);
  write(first, records_);
  flush();
}

void EventFile::add_scalar(const std::string& tag, double value, int64_t step) {
  proto::Event event = event_at(step);
  proto::Summary::Value& entry = *event.mutable_summary()->add_value();
  entry.set_tag(tag);
  entry.set_simple_value(static_cast<float>(value));
  write(event, records_);
}

void EventFile::add_histogram(const std::string& tag, const Tensor& values, int64_t step) {
  proto::Event event = event_at(step);
  proto::Summary::Value& entry = *event.mutable_summary()->add_value();
  entry.set_tag(tag);
  fill(values, *entry.mutable_histo());
  write(event, records_);
}

void EventFile::add_image(const std::string& tag, const Tensor& values, int64_t step) {
  const Tensor floats = values.cast(DType::kFloat32);
  std::string pixels;
  for (const float value : floats.data<float>()) {
    const float bounded = value > 0 ? std::min(value, 1.0F) : 0;  // NaN is black
    pixels += static_cast<char>(std::lround(bounded * 255));
  }
  const auto dim = [&](int axis) { return static_cast<int32_t>(values.dim(axis)); };
  proto::Event event = event_at(step);
  proto::Summary::Value& entry = *event.mutable_summary()->add_value();
  entry.set_tag(tag);
  proto::Summary::Image& image = *entry.mutable_image();
  image.set_height(dim(0));
  image.set_width(dim(1));
  image.set_colorspace(dim(2));
  image.set_encoded_image_string(png_of(pixels, dim(1), dim(0), dim(2)));
  write(event, records_);
}

void EventFile::flush() { records_.flush(); }
void EventFile::close() { records_.close(); }

}  // namespace keel
