#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/layers/keras_ops/nn.h>

namespace keel::keras_ops {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
using Labels = std::vector<int64_t>;

double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return high == kNever ? kNever : high + std::log1p(std::exp(low - high));
}

// Logits of one element of the batch.
struct Steps {
  const double* logits;
  int64_t count, classes;
  const double* at(int64_t step) const { return logits + step * classes; }
};

struct Path {
  Labels labels;
  double score = 0;
};

Path greedy(const Steps& steps, const CtcDecodeOptions& options) {
  Path out;
  int64_t before = -1;
  for (int64_t t = 0; t < steps.count; ++t) {
    const double* const logits = steps.at(t);
    const double* const best = std::max_element(logits, logits + steps.classes);
    const int64_t label = best - logits;
    out.score -= *best;
    const bool repeated = options.merge_repeated && label == before;
    if (label != options.mask_index && !repeated) out.labels.push_back(label);
    before = label;
  }
  return out;
}

// The log probabilities that the steps so far give these labels and end with the last label, or
// with a blank.
struct Ends {
  double label = kNever, blank = kNever;
  double total() const { return log_add(label, blank); }
};
using Beams = std::map<Labels, Ends>;

// Keeps the most likely sequences. Among equal ones, smaller classes go first.
std::vector<Path> most_likely(const Beams& beams, int64_t count) {
  std::vector<Path> all;
  for (const auto& [labels, ends] : beams) all.push_back({labels, ends.total()});
  std::ranges::stable_sort(all, [](const Path& a, const Path& b) { return a.score > b.score; });
  if (std::ssize(all) > count) all.resize(count);
  return all;
}

std::vector<double> log_softmax_of(const double* logits, int64_t classes) {
  const double high = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - high);
  std::vector<double> out(classes);
  for (int64_t c = 0; c < classes; ++c) out[c] = logits[c] - high - std::log(sum);
  return out;
}

// Adds the sequences that one more step makes of `labels`.
void extend(const Labels& labels, const Ends& ends, const std::vector<double>& log_p, int64_t blank,
            Beams& out) {
  Ends& same = out[labels];
  same.blank = log_add(same.blank, ends.total() + log_p[blank]);
  if (!labels.empty()) {
    same.label = log_add(same.label, ends.label + log_p[labels.back()]);
  }
  for (int64_t c = 0; c < std::ssize(log_p); ++c) {
    if (c == blank) continue;
    // A label that equals the last one needs a blank in between.
    const bool repeats = !labels.empty() && labels.back() == c;
    Labels longer = labels;
    longer.push_back(c);
    Ends& found = out[longer];
    found.label = log_add(found.label, (repeats ? ends.blank : ends.total()) + log_p[c]);
  }
}

std::vector<Path> beam_search(const Steps& steps, const CtcDecodeOptions& options) {
  Beams beams = {{Labels(), Ends{.blank = 0}}};
  for (int64_t t = 0; t < steps.count; ++t) {
    const std::vector<double> log_p = log_softmax_of(steps.at(t), steps.classes);
    Beams extended;
    for (const auto& [labels, ends] : beams) {
      extend(labels, ends, log_p, options.mask_index, extended);
    }
    beams.clear();
    for (const Path& path : most_likely(extended, options.beam_width)) {
      beams.emplace(path.labels, extended[path.labels]);
    }
  }
  return most_likely(beams, options.top_paths);
}

void check(const Tensor& inputs, const Tensor& lengths, const CtcDecodeOptions& options) {
  if (inputs.rank() != 3 || lengths.rank() != 1 || lengths.dim(0) != inputs.dim(0)) {
    throw ValueError("ctc_decode: requires inputs [batch, steps, classes] and lengths [batch], ",
                     "received ", inputs.shape(), " and ", lengths.shape());
  }
  const bool searches = options.strategy == "beam_search";
  if (!searches && options.strategy != "greedy") {
    throw ValueError("ctc_decode: strategy must be greedy or beam_search, received '",
                     options.strategy, "'");
  }
  if (options.mask_index < 0 || options.mask_index >= inputs.dim(2)) {
    throw ValueError("ctc_decode: mask_index ", options.mask_index, " is no class of ",
                     inputs.dim(2));
  }
  if (searches &&
      (options.beam_width < 1 || options.top_paths < 1 || options.top_paths > options.beam_width)) {
    throw ValueError("ctc_decode: requires 1 <= top_paths <= beam_width, received ",
                     options.top_paths, " and ", options.beam_width);
  }
}

}  // namespace

std::pair<Tensor, Tensor> ctc_decode(const Tensor& inputs, const Tensor& sequence_lengths,
                                     const CtcDecodeOptions& options) {
  check(inputs, sequence_lengths, options);
  const int64_t batch = inputs.dim(0), steps = inputs.dim(1), classes = inputs.dim(2);
  const bool searches = options.strategy == "beam_search";
  const int64_t paths = searches ? options.top_paths : 1;
  const std::vector<double> logits = internal::doubles_of(inputs);
  const std::vector<int64_t> lengths = internal::integers_of("ctc_decode", sequence_lengths);
  std::vector<int32_t> labels(paths * batch * steps, -1);
  std::vector<double> scores(batch * paths, kNever);
  for (int64_t b = 0; b < batch; ++b) {
    const Steps own = {.logits = logits.data() + b * steps * classes,
                       .count = std::clamp<int64_t>(lengths[b], 0, steps),
                       .classes = classes};
    const std::vector<Path> found =
        searches ? beam_search(own, options) : std::vector<Path>{greedy(own, options)};
    for (size_t p = 0; p < found.size(); ++p) {
      std::ranges::copy(found[p].labels,
                        labels.begin() + (static_cast<int64_t>(p) * batch + b) * steps);
      scores[b * paths + static_cast<int64_t>(p)] = found[p].score;
    }
  }
  const DType dtype = internal::floating(inputs).dtype();
  return {Tensor::from(labels, {paths, batch, steps}),
          Tensor::from(scores, {batch, paths}).cast(dtype)};
}

}  // namespace keel::keras_ops
