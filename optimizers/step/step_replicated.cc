#include <cstring>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/distribute/embedding/internal/row_exchange.h>
#include <keel/distribute/internal/placement.h>
#include <keel/optimizers/step/gradient_clipping.h>
#include <keel/optimizers/step/optimizer_slots.h>
#include <keel/optimizers/step/optimizer_step.h>
#include <keel/optimizers/step/summed_rows.h>

namespace keel {
namespace {

using distribute::Bytes;
using distribute::Communicator;
using distribute::OwnedRows;

// The variables whose gradients have the same kind, as seen by this replica.
struct PresentVariables {
  std::vector<const StepVariable*> variables;
  std::vector<VariableUpdate<float>> updates;

  bool empty() const { return variables.empty(); }
  size_t size() const { return variables.size(); }
};

PresentVariables with_form(GradientKind form, const StepPlan& plan, const UpdateRule& rule,
                           const std::vector<StepVariable>& variables) {
  PresentVariables out;
  for (const StepVariable& v : variables) {
    if (v.form != form) continue;
    out.variables.push_back(&v);
    out.updates.emplace_back(plan, rule, v.memory, v.weight_decay);
  }
  return out;
}

// Sums `values` over all ranks in rank order, so that every rank gets the same bits.
void sum_over_ranks(Communicator& communicator, std::vector<double>& values,
                    std::string_view what) {
  const std::vector<Bytes> received =
      communicator.all_gather(distribute::as_bytes_of<double>(values), what);
  std::ranges::fill(values, 0.0);
  for (const Bytes& bytes : received) {
    const auto part = distribute::as_elements<double>(bytes);
    for (size_t i = 0; i < values.size(); ++i) values[i] += part[i];
  }
}

// Passes the sums of the gradients to `consume`, for the elements that this replica updates.
// Returns false if the attachment is not accepted.
bool scatter_sums(Communicator& communicator, const PresentVariables& dense,
                  const Communicator::Consume& consume,
                  const Communicator::OnLastArrival& on_last_arrival,
                  const Communicator::Attachment* attachment) {
  std::vector<Tensor> gradients;
  std::vector<std::span<const float>> pieces;
  for (const StepVariable* v : dense.variables) {
    gradients.push_back(v->gradient ? v->gradient.dense() : Tensor::zeros(v->variable.shape()));
    pieces.push_back(gradients.back().data<float>());
  }
  if (attachment != nullptr) {
    return communicator.reduce_scatter_if(pieces, *attachment, consume, on_last_arrival);
  }
  communicator.reduce_scatter(pieces, consume, on_last_arrival);
  return true;
}

void share_values(Communicator& communicator, const PresentVariables& dense) {
  std::vector<std::span<float>> values;
  for (const StepVariable* v : dense.variables)
    values.push_back(VariableStorage(v->variable).elements<float>());
  communicator.all_gather_shards(values);
}

std::vector<int64_t> row_sizes(const PresentVariables& rows) {
  std::vector<int64_t> out;
  for (const StepVariable* v : rows.variables) out.push_back(row_size(v->variable));
  return out;
}

// Returns the sums of the rows that this replica updates.
std::vector<OwnedRows> owned_sums(Communicator& communicator, const StepPlan& plan,
                                  const PresentVariables& rows) {
  std::vector<SummedRows<float>> own;
  bool any_lazy = false;
  for (const StepVariable* v : rows.variables) {
    own.push_back(v->gradient ? sum_by_id<float>(v->gradient.slices(), row_size(v->variable))
                              : SummedRows<float>{});
    // A lazy table must get the bits that a dense gradient gives (LazyRows::kReplay).
    if (v->lazy != nullptr || v->sums_as_dense) add_to_zeros<float>(own.back().values);
    any_lazy = any_lazy || v->lazy != nullptr;
  }
  std::vector<OwnedRows> out(rows.size());
  for (const bool as_dense : {false, true}) {
    std::vector<size_t> numbers;
    std::vector<distribute::OutgoingRows> tables;
    for (size_t i = 0; i < own.size(); ++i) {
      if ((any_lazy || rows.variables[i]->sums_as_dense) != as_dense) continue;
      numbers.push_back(i);
      tables.push_back({.ids = own[i].ids,
                        .values = own[i].values,
                        .dim = row_size(rows.variables[i]->variable)});
    }
    if (tables.empty()) continue;
    std::vector<OwnedRows> sums = as_dense ? sum_rows_as_dense(communicator, tables)
                                           : distribute::sum_rows_to_owners(communicator, tables);
    for (size_t i = 0; i < numbers.size(); ++i) out[numbers[i]] = std::move(sums[i]);
  }
  for (OwnedRows& table : out) unscale<float>(plan, table.values);
  return out;
}

void change_shared_rows(Communicator& communicator, const PresentVariables& rows,
                        std::vector<OwnedRows> owned) {
  const std::vector<int64_t> dims = row_sizes(rows);
  // Tables are copied in every process, so all processes update the summed rows in their copy.
  owned = distribute::all_gather_owned_rows(communicator, std::move(owned), dims);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (dims[i] == 0) continue;
    change_rows(rows.updates[i], owned[i].ids, owned[i].values.data(), dims[i],
                rows.variables[i]->lazy);
  }
}

using BufferedUpdates = std::vector<BufferedUpdate<float>>;

void clip(Communicator& communicator, const StepPlan& plan, BufferedUpdates& dense,
          std::vector<OwnedRows>& rows) {
  std::vector<double> squares;
  for (BufferedUpdate<float>& buffered : dense) squares.push_back(buffered.squares());
  for (const OwnedRows& table : rows) squares.push_back(squares_of<float>(table.values));
  sum_over_ranks(communicator, squares, "the norms of gradients");
  const std::vector<double> factors = clip_factors(plan, squares);
  for (size_t i = 0; i < dense.size(); ++i) dense[i].scale(factors[i]);
  for (size_t i = 0; i < rows.size(); ++i) {
    scale<float>(rows[i].values, factors[dense.size() + i]);
  }
}

void step_layerwise(Communicator& communicator, BufferedUpdates& dense) {
  std::vector<double> squares;
  for (BufferedUpdate<float>& buffered : dense) {
    const SumsOfSquares sums = buffered.direct();
    squares.push_back(sums.values);
    squares.push_back(sums.directions);
  }
  sum_over_ranks(communicator, squares, "the norms of layers");
  for (size_t i = 0; i < dense.size(); ++i) {
    dense[i].move(LayerwiseRule::ratio(squares[2 * i], squares[2 * i + 1]));
  }
}

// Sums of gradients that one rank received, as a message: runs of elements, each behind its header.
struct RunOfSums {
  int64_t variable = 0, begin = 0, n = 0;
};

void append(std::vector<std::byte>& message, const void* from, size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  message.insert(message.end(), first, first + bytes);
}

// Copies the runs of the messages into the gradients. Those that are empty are left out.
void read_runs(std::span<const Bytes> messages, std::vector<std::vector<float>>& gradients) {
  for (Bytes message : messages) {
    while (!message.empty()) {
      RunOfSums run;
      std::memcpy(&run, message.data(), sizeof(run));
      message = message.subspan(sizeof(run));
      const size_t bytes = static_cast<size_t>(run.n) * sizeof(float);
      std::vector<float>& gradient = gradients[run.variable];
      if (!gradient.empty()) std::memcpy(gradient.data() + run.begin, message.data(), bytes);
      message = message.subspan(bytes);
    }
  }
}

// A step of a rule that needs whole variables. All ranks exchange their sums; then one rank of each
// process updates each variable, so that all processes compute the same bits without a second
// exchange. Returns false if the attachment is not accepted.
bool step_whole_variables(Communicator& communicator, const StepPlan& plan,
                          const PresentVariables& dense,
                          const Communicator::OnLastArrival& on_last_arrival,
                          const Communicator::Attachment* attachment) {
  const distribute::Placement& placement = communicator.placement();
  const auto local = static_cast<size_t>(communicator.rank() - placement.first_local());
  const auto is_own = [&](size_t i) { return i % static_cast<size_t>(placement.local()) == local; };
  std::vector<std::byte> message;
  const auto consume = [&](size_t i, int64_t begin, std::span<const float> sum) {
    const RunOfSums run = {
        .variable = static_cast<int64_t>(i), .begin = begin, .n = static_cast<int64_t>(sum.size())};
    append(message, &run, sizeof(run));
    append(message, sum.data(), sum.size_bytes());
  };
  if (!scatter_sums(communicator, dense, consume, {}, attachment)) return false;
  std::vector<std::vector<float>> gradients(dense.size());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (is_own(i)) gradients[i].resize(dense.variables[i]->variable.shape().size());
  }
  read_runs(communicator.all_gather(message, "the gradients of whole variables"), gradients);
  BufferedUpdates buffered(dense.updates.begin(), dense.updates.end());
  std::vector<double> squares(dense.size());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (!is_own(i)) continue;
    buffered[i].take_all(gradients[i].data(), static_cast<int64_t>(gradients[i].size()));
    // Every process has the same norms, of which only those of the first one count.
    if (placement.process == 0) squares[i] = buffered[i].squares();
  }
  if (clips_by_norm(plan)) sum_over_ranks(communicator, squares, "the norms of gradients");
  const std::vector<double> factors = clip_factors(plan, squares);
  for (size_t i = 0; i < dense.size(); ++i) {
    if (!is_own(i)) continue;
    if (!plan.updates) {
      buffered[i].average();
      continue;
    }
    buffered[i].scale(factors[i]);
    buffered[i].finish_variable(info_of(dense.variables[i]->variable));
  }
  communicator.local_barrier("the end of a step", on_last_arrival);
  return true;
}

}  // namespace

bool step_replicated(Communicator& communicator, const StepPlan& plan, const UpdateRule& rule,
                     const std::vector<StepVariable>& variables,
                     const Communicator::OnLastArrival& on_last_arrival,
                     const Communicator::Attachment* attachment) {
  PresentVariables dense = with_form(GradientKind::kDense, plan, rule, variables);
  if (dynamic_cast<const WholeVariableRule*>(&rule) != nullptr) {
    return step_whole_variables(communicator, plan, dense, on_last_arrival, attachment);
  }
  const PresentVariables rows = with_form(GradientKind::kRows, plan, rule, variables);
  const bool layerwise = plan.updates && dynamic_cast<const LayerwiseRule*>(&rule) != nullptr;
  const bool clips = clips_by_norm(plan);
  // Within a process the replicas write to the same memory. Only with several processes the new
  // values must be sent.
  const bool shares = (plan.updates || plan.overwrites) && communicator.placement().processes() > 1;
  BufferedUpdates buffered;
  // Updates that need norms are buffered until the sums of all elements are known.
  if (layerwise || clips) buffered = BufferedUpdates(dense.updates.begin(), dense.updates.end());
  // Without a later exchange, reduce_scatter can run `on_last_arrival`, which saves a barrier.
  const bool ends_with_sums = !dense.empty() && rows.empty() && buffered.empty() && !shares;
  if (!dense.empty()) {
    const auto consume = [&](size_t i, int64_t begin, std::span<const float> sum) {
      const auto n = static_cast<int64_t>(sum.size());
      buffered.empty() ? dense.updates[i](begin, sum.data(), n)
                       : buffered[i].take(begin, sum.data(), n);
    };
    const Communicator::OnLastArrival last =
        ends_with_sums ? on_last_arrival : Communicator::OnLastArrival();
    if (!scatter_sums(communicator, dense, consume, last, attachment)) return false;
  }
  if (ends_with_sums) return true;
  std::vector<OwnedRows> owned;
  if (!rows.empty()) owned = owned_sums(communicator, plan, rows);
  if (clips) clip(communicator, plan, buffered, owned);
  if (layerwise) {
    step_layerwise(communicator, buffered);
  } else {
    for (BufferedUpdate<float>& h : buffered) h.finish();
  }
  if (!dense.empty() && shares) share_values(communicator, dense);
  if (!rows.empty()) change_shared_rows(communicator, rows, std::move(owned));
  // No replica may read the variables before all replicas of its process have written.
  communicator.local_barrier("the end of a step", on_last_arrival);
  return true;
}

}  // namespace keel
