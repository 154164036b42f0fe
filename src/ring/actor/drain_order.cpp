#include "ring/actor/drain_order.hpp"

#include <algorithm>
#include <limits>

namespace cingulum::ring {
namespace {

// Strongly connected components by Tarjan (1972), without recursion: chains may be long.
class Components {
 public:
  explicit Components(const std::vector<std::vector<std::size_t>>& sends_to)
      : sends_to_(sends_to), visits_(sends_to.size()) {}

  std::vector<DrainGroup> find() {
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      if (visits_[i].index == unseen) visit(i);
    }
    // Found from the sinks on.
    std::reverse(groups_.begin(), groups_.end());
    return std::move(groups_);
  }

 private:
  static constexpr std::size_t unseen = std::numeric_limits<std::size_t>::max();
  struct Visit {
    std::size_t index = unseen;
    std::size_t low = 0;
    std::size_t next = 0;  // of its receivers
    bool is_open = false;
  };

  void enter(std::size_t actor) {
    visits_[actor].index = visits_[actor].low = entered_++;
    visits_[actor].is_open = true;
    open_.push_back(actor);
    path_.push_back(actor);
  }
  void visit(std::size_t first) {
    enter(first);
    while (!path_.empty()) {
      const std::size_t actor = path_.back();
      Visit& at = visits_[actor];
      if (at.next < sends_to_[actor].size()) {
        const std::size_t receiver = sends_to_[actor][at.next++];
        if (visits_[receiver].index == unseen) {
          enter(receiver);
        } else if (visits_[receiver].is_open) {
          at.low = std::min(at.low, visits_[receiver].index);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) visits_[path_.back()].low = std::min(visits_[path_.back()].low, at.low);
      if (at.low == at.index) close_group(actor);
    }
  }
  void close_group(std::size_t root) {
    DrainGroup group;
    for (bool is_root = false; !is_root;) {
      const std::size_t actor = open_.back();
      open_.pop_back();
      visits_[actor].is_open = false;
      is_root = actor == root;
      group.push_back(actor);
    }
    std::reverse(group.begin(), group.end());
    groups_.push_back(std::move(group));
  }

  const std::vector<std::vector<std::size_t>>& sends_to_;
  std::vector<Visit> visits_;
  std::vector<std::size_t> open_;
  std::vector<std::size_t> path_;
  std::vector<DrainGroup> groups_;
  std::size_t entered_ = 0;
};

}  // namespace

std::vector<DrainGroup> drain_order(const std::vector<std::vector<std::size_t>>& sends_to) {
  return Components(sends_to).find();
}

}  // namespace cingulum::ring
