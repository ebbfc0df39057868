// RowUpdater: the updates of one replica of an EmbeddingEngine.
#pragma once

#include <array>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/internal/exact_sum.h>
#include <keel/distribute/embedding/internal/engine_tables.h>
#include <keel/distribute/embedding/internal/row_gradient_list.h>
#include <keel/distribute/embedding/internal/row_gradients.h>

namespace keel::distribute {

// An update whose rows are not written yet.
struct PendingUpdate {
  std::shared_ptr<EmbeddingEngine::Ticket> ticket;
  std::vector<Tensor> gradients;  // by feature
  std::vector<TableStep> steps;   // by table
  bool has_admitted = false;      // the ids of dynamic tables have been counted and admitted
  bool has_begun = false;
  int64_t posted = 0;   // number of the post of its sums to other processes, if it has begun
  bool writes = false;  // rows may have been written

  // Returns the parameters of a table's update.
  Step step(size_t table) const {
    return {.learning_rate = steps[table].learning_rate,
            .iteration = steps[table].iteration,
            .hyperparameters = steps[table].hyperparameters};
  }
};

// By replica: the sums of its batch for rows that are held here. Each is written by one local
// replica before a barrier and read by all after it. Updates alternate between two sets, because
// other replicas may still read which rows the last update has changed.
class GradientSums {
 public:
  explicit GradientSums(int replicas) {
    for (std::vector<RowGradientList>& lists : lists_) lists.resize(replicas);
    uses.resize(replicas);
  }
  // The lookups whose ids an update of tables for unbounded ids counts, by replica and by table:
  // those of the local replicas, and what replicas of other processes have sent. Each is written by
  // one local replica before a barrier.
  std::vector<KeyedLookups> uses;
  std::exception_ptr error;  // of the admission; all replicas throw it

  // Returns the sums of the update with this number.
  std::vector<RowGradientList>& of(int64_t update) { return lists_[update % 2]; }
  const std::vector<RowGradientList>& of(int64_t update) const { return lists_[update % 2]; }

 private:
  std::array<std::vector<RowGradientList>, 2> lists_;
};

// Keeps its buffers from update to update. An update takes three calls, in this order: begin(),
// collect() and update_rows(). Between the first two, other processes need not be waited for.
class RowUpdater {
 public:
  // `sums` is shared by all replicas.
  RowUpdater(EngineTables& tables, GradientSums& sums, GroupBuffers& buffers);

  // Sums the gradients of each row over this replica's batch. Collective.
  void begin(Communicator& communicator, PendingUpdate& update);
  // Waits until all replicas have summed their gradients. From here on all of them count the
  // update. Collective.
  void collect(Communicator& communicator, PendingUpdate& update);
  // Updates this replica's share of the rows with the sums of all replicas. Does not wait until the
  // other replicas have written theirs: see Communicator::wait_for_arrivals(). Collective.
  void update_rows(Communicator& communicator, const PendingUpdate& update);

  // Queues an update, which apply_pending() begins, if it has not begun, and completes.
  void enqueue(PendingUpdate update) { pending_.push_back(std::move(update)); }
  // Applies the queued updates. An update that fails before it has written a row stays queued;
  // otherwise it is dropped. Collective.
  void apply_pending(Communicator& communicator);
  size_t pending() const { return pending_.size(); }
  void drop_pending() { pending_.clear(); }

  // Sets the label of the next update's collectives.
  void set_label(std::string label) { label_ = std::move(label); }
  const std::string& label() const { return label_; }
  // The number of updates so far, equal in all replicas.
  int64_t updates_done() const { return updates_done_; }
  void set_updates_done(int64_t count) { updates_done_ = count; }
  // Restarts the numbering of a table's updates after its weights were written.
  void restart_numbering(int table) { numbers_[table] = {}; }

  // Returns the number of rows of a table that the replicas have passed to the last update. A row
  // counts once for each replica.
  int64_t changed_rows(size_t table, const Communicator& communicator) const;
  // Calls fn(row) for each of them.
  template <class Fn>
  void for_each_changed_row(size_t table, const Communicator& communicator, const Fn& fn) const {
    if (applies_directly(table, communicator)) {
      const kernels::RowGroups& own = gradients_[table].groups();
      for (int64_t g = 0; g < own.size(); ++g) fn(own.id(g));
      return;
    }
    for (const RowGradientList& list : sums_.of(updates_done_)) {
      for (const int64_t id : list.ids(table)) fn(id);
    }
  }

 private:
  // Numbers the updates of a table; equal in all replicas.
  struct Number {
    int64_t iteration = -1;
    int64_t repeats = 0;  // updates with this iteration before the last one
    void advance(int64_t to) {
      repeats = to == iteration ? repeats + 1 : 0;
      iteration = to;
    }
  };

  void admit_keys(Communicator& communicator, PendingUpdate& update);
  int64_t first_group(size_t table) const;
  void admit_together();
  void list_keyed_sums(const Communicator& communicator, size_t table, const KeyedLookup& lookup);
  void renumber_keyed(RowGradientList& list, const KeyedLookups& uses) const;
  void fill_gradients(const PendingUpdate& update);
  bool applies_directly(size_t table, const Communicator& communicator) const;
  void list_sums(const Communicator& communicator, const PendingUpdate& update);
  int64_t post_sums(Communicator& communicator);
  void receive_sums(Communicator& communicator, int64_t posted);
  RowKeys keys_of(size_t table) const;
  std::pair<int64_t, int64_t> share_of_rows(size_t table, const Communicator& communicator) const;
  // Computes the factors by which the gradients of each table are multiplied. Collective if a table
  // clips by norm (row_updater_norms.cc).
  void clip_by_norm(Communicator& communicator);
  // Sum is double, or ExactSum for tables for unbounded ids.
  template <class Sum>
  Sum squares_of(size_t table, const Communicator& communicator) const;
  template <class Sum>
  Sum squares_of_groups(size_t table) const;
  template <class Sum>
  Sum squares_of_share(size_t table, const Communicator& communicator) const;
  std::vector<RowGradientList::Table> lists_of(size_t table) const;
  void update_shard(size_t table, std::span<const int64_t> ids, float* gradients, const Step& step,
                    RowKeys& keys);
  void update_directly(const PendingUpdate& update, const Communicator& communicator);
  void update_share(size_t table, const Communicator& communicator, const Step& step);
  void update_all_rows(size_t table, KWayMerge& merge, std::pair<int64_t, int64_t> positions,
                       const Step& step, RowKeys& keys);

  EngineTables& tables_;
  GradientSums& sums_;
  GroupBuffers& buffers_;
  std::vector<PendingUpdate> pending_;     // oldest first
  std::vector<RowGradients> gradients_;    // by table
  std::vector<RowGradientList> outgoing_;  // by process
  std::string label_;
  std::vector<Number> numbers_;  // by table
  // By table: this replica's part of the squared norms, of tables for unbounded ids in the second.
  std::vector<double> squares_;
  std::vector<ExactSum> keyed_squares_;
  std::vector<float> scales_;  // by table: factors of the gradients; empty if no table clips
  int64_t updates_done_ = 0;
};

}  // namespace keel::distribute
