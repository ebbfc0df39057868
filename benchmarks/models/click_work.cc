#include "benchmarks/models/click_work.h"

namespace keel::bench {
namespace {

double tower_flops(const Tower& tower) {
  double flops = 0;
  int64_t in = tower.input;
  for (int64_t out : tower.widths) {
    flops += 2.0 * static_cast<double>(in * out);
    in = out;
  }
  return flops;
}

constexpr int kCrossLayers = 2;
constexpr int64_t kPairs = (kColumns + 1) * kColumns / 2;

}  // namespace

std::string name_of(ModelKind kind) {
  switch (kind) {
    case ModelKind::kDlrm:
      return "dlrm";
    case ModelKind::kWideAndDeep:
      return "wide_and_deep";
    case ModelKind::kDcn:
      return "dcn";
  }
  return "";
}

Tower bottom_tower(const ClickWork& work) {
  return {.input = kNumbers, .widths = {512, 256, 64, work.dim}};
}

Tower top_tower(const ClickWork& work) {
  const int64_t joined = kColumns * work.dim + kNumbers;
  switch (work.model) {
    case ModelKind::kDlrm:
      return {.input = work.dim + kPairs, .widths = {512, 256, 1}};
    case ModelKind::kWideAndDeep:
      return {.input = joined, .widths = {1024, 512, 256, 1}};
    case ModelKind::kDcn:
      return {.input = joined, .widths = {512, 256, 1}};
  }
  return {};
}

double forward_flops(const ClickWork& work) {
  const double top = tower_flops(top_tower(work));
  if (work.model == ModelKind::kDlrm) {
    return top + tower_flops(bottom_tower(work)) + 2.0 * static_cast<double>(kPairs * work.dim);
  }
  if (work.model == ModelKind::kWideAndDeep) return top;
  const auto width = static_cast<double>(top_tower(work).input);
  return top + kCrossLayers * 2 * width * width;
}

// The gradient of the input of the first DLRM layer is not needed.
double training_flops(const ClickWork& work) {
  const double all = 3 * forward_flops(work);
  if (work.model != ModelKind::kDlrm) return all;
  const Tower bottom = bottom_tower(work);
  return all - 2.0 * static_cast<double>(bottom.input * bottom.widths[0]);
}

}  // namespace keel::bench
