#include <keel/distribute/dynamic/internal/admission_filter.h>

namespace keel::distribute {

template <class Key>
AdmissionFilter<Key>::AdmissionFilter(const Admission& admission) : admission_(admission) {
  // count(1) admits every key at once, so there is nothing to count.
  if (admission.kind == Admission::Kind::kCount && admission.occurrences == 1) {
    admission_.kind = Admission::Kind::kAlways;
  }
  if (admission.counts.window > 0) pending_.track_expiry();
  if (admission.kind == Admission::Kind::kSketch) sketch_.emplace(admission.cells.width);
}

template <class Key>
int64_t AdmissionFilter<Key>::count(const Key& key, uint64_t hash) const {
  if (sketch_) return sketch_->count(hash);
  const uint32_t position = pending_.find(key, hash);
  return position == KeyIndex::kNone ? 0 : pending_.use(position).count;
}

template <class Key>
bool AdmissionFilter<Key>::qualifies(const Key& key, uint64_t hash, int64_t update,
                                     const InitialRows& initial) const {
  switch (admission_.kind) {
    case Admission::Kind::kAlways:
      break;
    case Admission::Kind::kCount:
    case Admission::Kind::kSketch:
      return admission_.occurrences == 1 || count(key, hash) >= admission_.occurrences - 1;
    case Admission::Kind::kProbability:
      return initial.draw(stream_key(key), update) < admission_.share;
  }
  return true;
}

template <class Key>
void AdmissionFilter<Key>::observe(const Key& key, uint64_t hash, int64_t occurrences,
                                   int64_t now) {
  if (sketch_) {
    sketch_->add(hash, occurrences);
  } else if (admission_.kind == Admission::Kind::kCount) {
    const uint32_t position = pending_.find(key, hash);
    if (position == KeyIndex::kNone) {
      KeyUse use = {.last = now, .born = now};
      use.add(occurrences, now);
      pending_.add(key, hash, use);
    } else {
      pending_.add_use(position, occurrences, now);
    }
  }
}

template <class Key>
int64_t AdmissionFilter<Key>::take(const Key& key, uint64_t hash) {
  const uint32_t position = pending_.find(key, hash);
  if (position == KeyIndex::kNone) return 0;
  const int64_t out = pending_.use(position).count;
  pending_.remove(position);
  return out;
}

template <class Key>
void AdmissionFilter<Key>::drop_window(int64_t now) {
  const int64_t window = admission_.counts.window;
  if (window == 0) return;
  for (const uint32_t position : pending_.take_expired(now - window)) pending_.remove(position);
}

template <class Key>
void AdmissionFilter<Key>::end_update(int64_t update) {
  const int64_t halve_every = admission_.cells.halve_every;
  if (sketch_ && halve_every > 0 && (update + 1) % halve_every == 0) sketch_->halve();
}

template class AdmissionFilter<int64_t>;
template class AdmissionFilter<std::string>;

}  // namespace keel::distribute
