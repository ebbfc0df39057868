// Implements every interface of this folder for builds without libtorch.
#include "benchmarks/peer/embedding_peer.h"
#include "benchmarks/peer/gemm_peer.h"
#include "benchmarks/peer/layer_peer.h"
#include "benchmarks/peer/model_peer.h"
#include "benchmarks/peer/peer.h"

namespace keel::bench {

bool peer_available() { return false; }
std::string peer_name() { return ""; }
void set_peer_threads(int) {}

std::unique_ptr<EmbeddingPeer> make_embedding_peer(const EmbeddingPeerOptions&) { return nullptr; }
std::unique_ptr<GemmPeer> make_gemm_peer(const GemmShape&, bool) { return nullptr; }
std::unique_ptr<LayerPeer> make_layer_peer(const LayerWork&, MemoryFormat,
                                           const std::vector<float>&,
                                           const std::vector<WeightValues>&,
                                           const std::vector<int64_t>&) {
  return nullptr;
}
std::unique_ptr<ModelPeer> make_model_peer(const ModelPeerOptions&, const std::vector<ClickBatch>&,
                                           const StartValues&) {
  return nullptr;
}

}  // namespace keel::bench
