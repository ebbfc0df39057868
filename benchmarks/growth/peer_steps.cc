#include <algorithm>
#include <optional>

#include "benchmarks/growth/steps.h"
#include "benchmarks/peer/embedding_peer.h"
#include "benchmarks/peer/peer.h"
#include "benchmarks/support/pages.h"

namespace keel::bench {
namespace {

std::optional<SparseOptimizer> counterpart(const GrowthSetting& setting) {
  if (setting.optimizer == "sgd") return SparseOptimizer::kSgd;
  if (setting.optimizer == "adagrad") return SparseOptimizer::kAdagrad;
  // The optimizers of the tpu strategy update only the rows of the batch.
  if (setting.strategy != "tpu") return {};
  return setting.optimizer == "adam" ? SparseOptimizer::kAdam : SparseOptimizer::kFtrl;
}

double start_of_accumulator(SparseOptimizer optimizer) {
  if (optimizer == SparseOptimizer::kAdagrad) return kAdagradStart;
  return optimizer == SparseOptimizer::kFtrl ? kFtrlStart : 0;
}

// Steps of one table.
class PeerSteps final : public GrowthSteps {
 public:
  PeerSteps(const GrowthSetting& setting, SparseOptimizer optimizer)
      : source_(setting),
        gradient_(setting.samples * kGrowthDim, 1.0F / static_cast<float>(setting.samples)) {
    const int64_t elements = setting.vocabulary * kGrowthDim;
    const auto part = [&](double start) {
      memory_.push_back(std::make_unique<PagedMemory>(elements * sizeof(float), Pages::kHuge));
      float* const out = memory_.back()->floats();
      std::fill_n(out, elements, static_cast<float>(start));
      return out;
    };
    EmbeddingPeerOptions options = {.table = part(0.01),
                                    .rows = setting.vocabulary,
                                    .dim = kGrowthDim,
                                    .optimizer = optimizer,
                                    .learning_rate = kGrowthRate};
    for (int i = 0; i < slots_of(optimizer); ++i) {
      options.slots[i] = part(i == 0 ? start_of_accumulator(optimizer) : 0);
    }
    peer_ = make_embedding_peer(options);
    warm_up(source_.ids());
  }

 private:
  void draw(int batches) override {
    batches_.clear();
    for (int i = 0; i < batches; ++i) batches_.push_back(source_.draw().front());
  }

  void step_on(int batch) override {
    const BagBatch& bags = batches_.at(batch);
    peer_->step({.ids = bags.ids.data(), .splits = bags.splits.data(), .samples = bags.samples()},
                gradient_.data());
  }

  GrowthBatches source_;
  const std::vector<float> gradient_;
  std::vector<std::unique_ptr<PagedMemory>> memory_;
  std::unique_ptr<EmbeddingPeer> peer_;
  std::vector<BagBatch> batches_;
};

}  // namespace

std::unique_ptr<GrowthSteps> make_growth_steps_of_peer(const GrowthSetting& setting) {
  const auto optimizer = counterpart(setting);
  if (!optimizer || setting.tables != 1 || !peer_available()) return nullptr;
  return std::make_unique<PeerSteps>(setting, *optimizer);
}

}  // namespace keel::bench
