// The bodies of the workloads with many lanes: threads that call the context together, as the threads of a CUDA block
// do. Every number must be that of one lane, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "base/interrupt.hpp"
#include "device/registry.hpp"
#include "ring/resident/emulated_backend.hpp"
#include "ring/resident/resident_grid.hpp"
#include "ring/workloads/anomaly.hpp"
#include "ring/workloads/anomaly_body.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/extended.hpp"
#include "ring/workloads/hop_body.hpp"
#include "ring/workloads/meeting.hpp"
#include "ring/workloads/pagerank.hpp"
#include "ring/workloads/pagerank_body.hpp"
#include "ring/workloads/rank_graph.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum::ring {
namespace {

// What the lanes of one actor share. Messages are given in order; answers are kept.
struct Block {
  explicit Block(std::uint32_t lane_count, BufferTable& table)
      : lanes(lane_count), barrier(static_cast<std::ptrdiff_t>(lane_count)), buffers(table) {}

  const std::uint32_t lanes;
  std::barrier<> barrier;
  BufferTable& buffers;
  std::vector<Message> to_receive;
  std::vector<Message> sent;
  bool stop_requested = false;
  alignas(16) std::array<unsigned char, state_capacity> state = {};
  alignas(16) std::array<unsigned char, 4096> block_memory = {};
};

class LaneContext {
 public:
  LaneContext(Block& block, std::uint32_t lane) : block_(block), lane_(lane) {}

  bool receive(Message& message) {
    sync();  // as on a device: nobody is still at work on the last message
    if (next_ == block_.to_receive.size()) return false;
    message = block_.to_receive[next_++];
    sync();
    return true;
  }
  PutStatus send(const Message& message) {
    sync();
    if (lane_ == 0) block_.sent.push_back(message);
    sync();
    return PutStatus::stored;
  }
  void* buffer(BufferHandle handle) {
    const auto entries = block_.buffers.entries();
    return find_buffer<HostAtomics>(entries.data(), static_cast<std::uint32_t>(entries.size()), block_.buffers.number(),
                                    handle);
  }
  void heartbeat() {}
  std::uint64_t time_ns() const { return steady_now_ns(); }
  bool should_stop() {
    sync();
    return block_.stop_requested;
  }
  std::uint64_t read_shared(const std::uint64_t& word) const { return HostAtomics::load_acquire(word); }
  void write_shared(std::uint64_t& word, std::uint64_t value) { HostAtomics::store_release(word, value); }
  void back_off() { std::this_thread::yield(); }
  std::uint32_t lane() const { return lane_; }
  std::uint32_t lanes() const { return block_.lanes; }
  void sync() { block_.barrier.arrive_and_wait(); }
  template <class State>
  State& state() {
    static_assert(sizeof(State) <= state_capacity);
    return *reinterpret_cast<State*>(block_.state.data());
  }
  template <class Memory>
  Memory* block_memory() {
    static_assert(sizeof(Memory) <= sizeof(block_.block_memory));
    return reinterpret_cast<Memory*>(block_.block_memory.data());
  }
  std::uint32_t seat() const { return 0; }
  bool sync_seats() {
    sync();
    return !block_.stop_requested;
  }

 private:
  Block& block_;
  const std::uint32_t lane_;
  std::size_t next_ = 0;
};

// Gives the messages to the body on so many lanes; the code that all of them returned.
template <class Body>
int run_on_lanes(Block& block, const Body& body) {
  std::vector<int> codes(block.lanes);
  std::vector<std::thread> threads;
  for (std::uint32_t lane = 0; lane < block.lanes; ++lane) {
    threads.emplace_back([&, lane] {
      LaneContext context(block, lane);
      codes[lane] = body(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int code : codes) EXPECT_EQ(code, codes[0]);
  return codes[0];
}

template <class T>
BufferHandle buffer_of(BufferTable& table, const std::vector<T>& values) {
  const BufferHandle handle = table.add(values.size() * sizeof(T)).value();
  if (!values.empty()) std::memcpy(table.get(handle)->data(), values.data(), values.size() * sizeof(T));
  return handle;
}

std::vector<double> random_numbers(std::size_t count) {
  std::mt19937_64 random(count + 1);
  std::normal_distribution<double> draw;
  std::vector<double> numbers(count);
  for (double& number : numbers) number = draw(random) * std::exp(5 * draw(random));
  return numbers;
}

TEST(workload_bodies, sums_are_the_same_bits_on_any_number_of_lanes) {
  BufferTable table(64);
  std::map<std::uint32_t, std::vector<double>> sums;
  const std::vector<std::size_t> sizes = {0, 1, 2, 255, 256, 257, 1000, 4099};
  for (const std::uint32_t lanes : {1U, 2U, 3U, 8U}) {
    Block block(lanes, table);
    std::vector<BufferHandle> handles;
    for (const std::size_t size : sizes) {
      handles.push_back(buffer_of(table, random_numbers(size)));
      block.to_receive.push_back(make_buffer_message(SumRequest{handles.back()}));
    }
    ASSERT_EQ(run_on_lanes(block, SumBody<true>{}), 0);
    ASSERT_EQ(block.sent.size(), sizes.size());
    for (const Message& message : block.sent) sums[lanes].push_back(payload<SumReply>(message).sum);
    EXPECT_EQ(sums[lanes], sums[1]) << lanes;
    for (const BufferHandle& handle : handles) ASSERT_TRUE(table.release(handle).has_value());
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    long double expected = 0;
    for (const double number : random_numbers(sizes[i])) expected += static_cast<long double>(number) * number;
    EXPECT_NEAR(sums[1][i], static_cast<double>(expected), 1e-12 * static_cast<double>(expected));
  }
}

TEST(workload_bodies, the_largest_of_all_lanes_is_found_in_the_numbers_that_they_share_and_no_others) {
  BufferTable table(1);
  for (const std::uint32_t lanes : {1U, 2U, 16U, 17U, 33U}) {
    Block block(lanes, table);
    constexpr std::size_t shared = strand_count + lanes_per_group;
    constexpr double of_others = 1e9;
    std::vector<double> strands(shared + 1000, of_others);
    const int code = run_on_lanes(block, [&](LaneContext& context) {
      int wrong = 0;
      for (std::uint32_t largest_at = 0; largest_at < lanes; ++largest_at) {
        const double mine = context.lane() == largest_at ? 7 : 0.5 * context.lane() / lanes;
        if (largest_over_lanes(context, strands.data(), mine) != 7) ++wrong;
        context.sync();
      }
      return wrong;
    });
    EXPECT_EQ(code, 0) << lanes;
    EXPECT_TRUE(std::all_of(strands.begin() + shared, strands.end(), [](double x) { return x == of_others; })) << lanes;
  }
}

TEST(workload_bodies, a_stale_buffer_is_a_failure_not_zeros) {
  BufferTable table(4);
  const BufferHandle handle = buffer_of(table, random_numbers(10));
  ASSERT_TRUE(table.release(handle).has_value());
  Block block(2, table);
  block.to_receive = {make_buffer_message(SumRequest{handle})};
  EXPECT_EQ(run_on_lanes(block, SumBody<false>{}), failure_stale_buffer);
}

TEST(workload_bodies, scores_are_the_same_bits_on_any_number_of_lanes) {
  constexpr std::uint32_t batch = 700;
  const std::vector<float> signal = example_signal(20 * batch, 3).value();
  std::map<std::uint32_t, std::vector<Message>> answers;
  std::map<std::uint32_t, std::vector<std::uint32_t>> listed;
  for (const std::uint32_t lanes : {1U, 3U, 8U}) {
    BufferTable table(64);
    Block block(lanes, table);
    const BufferHandle window = buffer_of(table, std::vector<float>(1000));
    const BufferHandle indices = buffer_of(table, std::vector<std::uint32_t>(most_listed_anomalies));
    block.to_receive.push_back(make_buffer_message(DetectorStart{window, indices}));
    for (std::uint32_t i = 0; i < 20; ++i) {
      const std::vector<float> values(signal.begin() + i * batch, signal.begin() + (i + 1) * batch);
      block.to_receive.push_back(make_buffer_message(SignalBatch{buffer_of(table, values), i, batch}));
    }
    ASSERT_EQ(run_on_lanes(block, AnomalyBody{}), 0);
    ASSERT_EQ(block.sent.size(), 21U);
    answers[lanes] = block.sent;
    listed[lanes].resize(most_listed_anomalies);
    std::memcpy(listed[lanes].data(), table.get(indices)->data(), 4 * most_listed_anomalies);
    std::vector<float> kept(1000);
    std::memcpy(kept.data(), table.get(window)->data(), 4000);
    for (std::size_t i = 0; i < 1000; ++i) {
      const std::size_t at = signal.size() - 1000 + i;
      ASSERT_EQ(kept[at % 1000], signal[at]);  // the newest thousand, each in its place
    }
    for (std::size_t i = 0; i < block.sent.size(); ++i) {
      auto scores = payload<BatchScores>(answers[lanes][i]);
      const auto plain = payload<BatchScores>(answers[1][i]);
      scores.indices.table = plain.indices.table;  // each run has a table of its own
      ASSERT_EQ(std::memcmp(&scores, &plain, sizeof plain), 0) << lanes << " " << i;
    }
    EXPECT_EQ(listed[lanes], listed[1]);
  }
  EXPECT_GT(payload<BatchScores>(answers[1].back()).anomalies, 2U);
}

TEST(workload_bodies, ranks_do_not_depend_on_actors) {
  const auto edges = random_edges(500, 3000, 4).value();
  std::vector<double> first;
  for (const std::uint32_t actors : {1U, 2U, 5U}) {
    const auto place = make_cpu_place(2);
    ASSERT_TRUE(place.has_value()) << place.error().message();
    PageRankOptions options;
    options.workers = actors;
    const auto result = run_pagerank(**place, 500, edges, options);
    ASSERT_TRUE(result.has_value()) << result.error().message();
    EXPECT_TRUE(result->fastest.converged);
    if (first.empty()) first = result->ranks;
    EXPECT_EQ(result->ranks, first) << actors;
  }
  // Ranks hand on their mass: with an edge out of every node they would sum to one.
  double sum = 0;
  for (const double rank : first) sum += rank;
  EXPECT_GT(sum, 0.9);
  EXPECT_LE(sum, 1 + 1e-12);
}

// A graph with everything that the layout tells apart: more than one window, nodes without sources or targets, rows of
// all lengths up to one that is much longer than any column, edges in no order.
constexpr std::uint32_t uneven_nodes = places_per_window + 3 * places_per_slice + 5;
std::vector<Edge> uneven_edges() {
  std::mt19937 random(7);
  std::vector<Edge> edges;
  const auto draw = [&] { return static_cast<std::uint32_t>(random() % uneven_nodes); };
  for (std::uint32_t target = 0; target < uneven_nodes; ++target) {
    std::uint32_t sources = target % 7;
    if (target % 1000 == 1) sources = most_columns + 1;
    if (target % 1000 == 2) sources = most_columns;
    if (target == 17) sources = 3000;
    for (std::uint32_t i = 0; i < sources; ++i) {
      std::uint32_t source = draw();
      while (source % 11 == 0) source = draw();
      edges.push_back({source, target});
    }
  }
  std::shuffle(edges.begin(), edges.end(), random);
  return edges;
}

// Ranks by the plainest loops, sums over ascending sources.
std::vector<double> plain_ranks(std::uint32_t nodes, std::vector<Edge> edges, std::uint32_t steps) {
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return std::pair(a.target, a.source) < std::pair(b.target, b.source); });
  std::vector<double> degree(nodes), ranks(nodes, 1.0 / nodes);
  for (const Edge& edge : edges) degree[edge.source] += 1;
  for (std::uint32_t step = 0; step < steps; ++step) {
    std::vector<double> sums(nodes);
    for (const Edge& edge : edges) sums[edge.target] += 0.85 * (1.0 / degree[edge.source]) * ranks[edge.source];
    for (std::uint32_t node = 0; node < nodes; ++node) ranks[node] = (1 - 0.85) / nodes + sums[node];
  }
  return ranks;
}

TEST(workload_bodies, ranks_of_an_uneven_graph_are_the_bits_of_plain_sums) {
  const std::vector<Edge> edges = uneven_edges();
  const std::vector<double> expected = plain_ranks(uneven_nodes, edges, 4);
  for (const std::uint32_t actors : {1U, 3U}) {
    const auto place = make_cpu_place(2).value();
    const auto found = run_pagerank(*place, uneven_nodes, edges, {.tolerance = 0, .max_steps = 4, .workers = actors});
    ASSERT_TRUE(found.has_value()) << found.error().message();
    EXPECT_EQ(found->fastest.steps, 4U);
    EXPECT_TRUE(found->ranks == expected) << actors;
  }
}

TEST(workload_bodies, ranks_are_the_same_bits_on_any_number_of_lanes) {
  const std::vector<Edge> edges = uneven_edges();
  const std::vector<double> expected = plain_ranks(uneven_nodes, edges, 3);
  const RankGraph graph = build_rank_graph(uneven_nodes, edges, 0.85, 1).value();
  EXPECT_EQ(graph.header.long_rows, 18U);  // each thousandth node, and the one with most
  for (const std::uint32_t lanes : {1U, 3U, 8U}) {
    BufferTable table(1);
    Block block(lanes, table);
    const BufferHandle handle = buffer_of(table, graph.bytes);
    block.to_receive = {make_buffer_message(RankStart{handle, 0}), make_buffer_message(RankSteps{handle, 0, 2, 0}),
                        make_buffer_message(RankSteps{handle, 2, 3, 0})};
    ASSERT_EQ(run_on_lanes(block, PageRankBody{}), 0);
    ASSERT_EQ(block.sent.size(), 3U);
    EXPECT_EQ(payload<RankDone>(block.sent[1]).steps, 2U);
    const auto* const ranks = reinterpret_cast<const double*>(table.get(handle)->data() + graph.header.ranks);
    std::uint32_t wrong = 0;
    for (std::uint32_t node = 0; node < uneven_nodes; ++node) wrong += ranks[graph.place_of[node]] != expected[node];
    EXPECT_EQ(wrong, 0U) << lanes;
  }
}

TEST(workload_bodies, the_shares_of_a_graph_are_all_of_it_and_about_equal) {
  const std::vector<Edge> edges = uneven_edges();
  for (const std::uint32_t actors : {1U, 4U, 1000U}) {
    const RankGraph graph = build_rank_graph(uneven_nodes, edges, 0.85, actors).value();
    ASSERT_EQ(graph.shares.size(), actors);
    RankShare last;
    std::uint32_t most_slices = 0;
    for (const RankShare& share : graph.shares) {
      EXPECT_EQ(share.first_slice, last.end_slice);
      EXPECT_EQ(share.first_long_row, last.end_long_row);
      most_slices = std::max(most_slices, share.end_slice - share.first_slice);
      last = share;
    }
    EXPECT_EQ(last.end_slice, graph.header.slices);
    EXPECT_EQ(last.end_long_row, graph.header.long_rows);
    EXPECT_LE(most_slices, 2 * graph.header.slices / actors + 1);
  }
}

TEST(workload_bodies, a_graph_that_an_edge_leaves_is_refused) {
  for (const Edge edge : {Edge{5, 0}, Edge{0, 5}}) {
    const auto graph = build_rank_graph(5, std::vector<Edge>{{0, 1}, edge}, 0.85, 1);
    ASSERT_FALSE(graph.has_value());
    EXPECT_EQ(graph.error().kind(), ErrorKind::invalid_argument);
  }
  EXPECT_FALSE(build_rank_graph(0, {}, 0.85, 1).has_value());
}

// Rounds in which each actor writes a number and afterwards reads those of all.
struct Meeter {
  MeetingLine* lines;
  std::uint32_t actors;
  std::uint32_t self;
  std::uint64_t rounds;
  std::uint64_t (*written)[8];  // of even and odd rounds; plain words
  std::atomic<std::uint64_t>* wrong;

  template <class Context>
  int operator()(Context& context) const {
    auto* const strands = &context.template state<std::array<double, strand_count + lanes_per_group>>()[0];
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      if (context.lane() == context.lanes() - 1) written[round & 1][self] = 10 * round + self;
      double value = static_cast<double>((round * 7 + self * 5) % 11);
      if (!meet(context, lines, actors, self, round, strands, value)) return 1;
      double largest = 0;
      for (std::uint32_t actor = 0; actor < actors; ++actor) {
        largest = std::max(largest, static_cast<double>((round * 7 + actor * 5) % 11));
        if (written[round & 1][actor] != 10 * round + actor) ++*wrong;
      }
      if (value != largest) ++*wrong;
    }
    return 0;
  }
};

TEST(workload_bodies, actors_that_meet_see_what_all_have_written_and_the_largest_value) {
  constexpr std::uint32_t actors = 3;
  BufferTable table(1);
  for (const std::uint32_t lanes : {1U, 2U}) {
    std::vector<MeetingLine> lines(actors);
    std::uint64_t written[2][8] = {};
    std::atomic<std::uint64_t> wrong = 0;
    std::vector<std::thread> threads;
    for (std::uint32_t self = 0; self < actors; ++self) {
      threads.emplace_back([&, self] {
        Block block(lanes, table);
        EXPECT_EQ(run_on_lanes(block, Meeter{lines.data(), actors, self, 300, written, &wrong}), 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0U) << lanes;
  }
}

TEST(workload_bodies, who_waits_for_an_actor_that_does_not_come_can_be_told_to_stop) {
  BufferTable table(1);
  std::vector<MeetingLine> lines(2);
  std::uint64_t written[2][8] = {};
  std::atomic<std::uint64_t> wrong = 0;
  for (const std::uint32_t self : {0U, 1U}) {
    Block block(2, table);
    block.stop_requested = true;
    EXPECT_EQ(run_on_lanes(block, Meeter{lines.data(), 2, self, 1, written, &wrong}), 1);
  }
  EXPECT_EQ(lines[0].round, 0U) << "the first tells that all have come";
  EXPECT_EQ(lines[1].round, 1U);
}

// The place that GPUs have, on a grid of threads.
class workload_grid : public ::testing::Test {
 protected:
  std::unique_ptr<WorkloadPlace> place_of(std::uint32_t seats) {
    using Backend =
        EmulatedBackend<EchoBody, SumBody<false>, SumBody<true>, PageRankBody, AnomalyBody, HopBody, BatchEchoBody>;
    GridOptions options;
    options.seats = seats;
    options.ring_capacity = 1024;
    options.scratch_bytes = 1 << 20;
    auto grid = ResidentGrid::open(std::make_unique<Backend>(workload_body_names()), options);
    EXPECT_TRUE(grid.has_value()) << grid.error().message();
    if (!grid) return nullptr;
    auto place = make_resident_place(std::move(*grid), *registry_.select_one("cpu").value());
    EXPECT_TRUE(place.has_value()) << place.error().message();
    return place ? std::move(*place) : nullptr;
  }

 private:
  DeviceRegistry registry_ = DeviceRegistry::probe({}).value();
};

TEST_F(workload_grid, ranks_are_the_same_bits_for_any_number_of_seats) {
  const std::vector<Edge> edges = uneven_edges();
  const std::vector<double> expected = plain_ranks(uneven_nodes, edges, 4);
  const auto place = place_of(5);
  ASSERT_NE(place, nullptr);
  for (const std::uint32_t workers : {1U, 2U, 5U}) {
    const auto found = run_pagerank(*place, uneven_nodes, edges, {.tolerance = 0, .max_steps = 4, .workers = workers});
    ASSERT_TRUE(found.has_value()) << found.error().message();
    EXPECT_EQ(found->workers, workers);
    EXPECT_EQ(found->fastest.steps, 4U);
    EXPECT_TRUE(found->ranks == expected) << workers;
  }
}

// The third seat has no share of the graph: the others do not wait for it.
TEST_F(workload_grid, a_rank_actor_fails_as_a_whole_when_one_of_its_seats_does) {
  const auto place = place_of(3);
  ASSERT_NE(place, nullptr);
  const RankGraph graph = build_rank_graph(50, random_edges(50, 300, 4).value(), 0.85, 2).value();
  const BufferHandle kept = place->keep(graph.bytes).value();
  ActorOptions options;
  options.seats = 3;
  const ActorHandle actor = place->start("ranks", WorkloadBody::pagerank, Traffic::answers, options).value();
  const auto answer =
      place->runtime().request(*actor, make_buffer_message(RankStart{kept, 0}), std::chrono::seconds(10));
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().kind(), ErrorKind::timed_out) << answer.error().message();
}

// Every workload, and the ranks of the CPU.
TEST_F(workload_grid, runs_every_workload) {
  const auto place = place_of(2);
  ASSERT_NE(place, nullptr);

  ExtendedOptions extended;
  extended.latency_samples = 50;
  extended.warm_up = 10;
  extended.message_counts = {100, 1000};
  extended.number_counts = {10, 300};
  extended.actor_counts = {1, 2};
  extended.messages_per_actor = 200;
  const auto extended_result = run_extended(*place, extended);
  ASSERT_TRUE(extended_result.has_value()) << extended_result.error().message();

  const auto edges = random_edges(300, 2000, 4).value();
  const auto ranks = run_pagerank(*place, 300, edges, {.workers = 2});
  ASSERT_TRUE(ranks.has_value()) << ranks.error().message();
  const auto cpu_place = make_cpu_place(1).value();
  const auto cpu_ranks = run_pagerank(*cpu_place, 300, edges, {}).value();
  EXPECT_EQ(ranks->ranks, cpu_ranks.ranks);
  EXPECT_EQ(ranks->fastest.steps, cpu_ranks.fastest.steps);

  const std::vector<float> signal = example_signal(20000, 5).value();
  const auto scores = run_anomaly(*place, signal, {.batch = 500, .runs = 2});
  ASSERT_TRUE(scores.has_value()) << scores.error().message();
  const auto cpu_scores = run_anomaly(*cpu_place, signal, {.batch = 500, .runs = 1}).value();
  EXPECT_EQ(scores->anomalies, cpu_scores.anomalies);
  EXPECT_EQ(scores->first_indices, cpu_scores.first_indices);
  EXPECT_EQ(scores->mean_score, cpu_scores.mean_score);

  // Two hops beyond the first actor and back, the number counted down.
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(place->launch(name, WorkloadBody::hop, Traffic::answers, {}).has_value());
  }
  Runtime& runtime = place->runtime();
  ASSERT_TRUE(runtime.fan_out("a", 1, {"b"}) && runtime.fan_out("b", 1, {"a"}));
  ASSERT_TRUE(runtime.activate("a") && runtime.activate("b"));
  const auto hopped = runtime.request("a", make_message(Ping{3}), std::chrono::seconds(10));
  ASSERT_TRUE(hopped.has_value()) << hopped.error().message();
  EXPECT_EQ(payload<Ping>(*hopped).value, 0);

  // Requests that an actor answers itself are timed, one in so many.
  ASSERT_TRUE(runtime.terminate("a").has_value());
  const ActorHandle echo = place->start("echo", WorkloadBody::echo, Traffic::answers, {}).value();
  const std::uint32_t interval = ActorOptions{}.latency_sample_interval;
  for (std::uint32_t i = 0; i < 3 * interval; ++i) {
    ASSERT_TRUE(runtime.request(*echo, make_message(Ping{1}), std::chrono::seconds(10)).has_value());
  }
  EXPECT_EQ(echo->telemetry().latency.count, 3U);
}

// Answers like a rank actor when it starts, and fails at its first step.
struct FailingRankBody {
  template <class Context>
  int operator()(Context& context) const {
    Message message;
    while (context.receive(message) && holds<RankStart>(message)) context.send(make_reply(message, RankDone{}));
    return 7;
  }
};

// The threads' place, with one actor that fails.
class FailingPlace final : public WorkloadPlace {
 public:
  std::string name() const override { return inner_->name(); }
  Runtime& runtime() override { return inner_->runtime(); }
  Result<ActorHandle> launch(const std::string& name, WorkloadBody body, Traffic traffic,
                             const ActorOptions& options) override {
    if (name == "pagerank-1") return runtime().launch(name, FailingRankBody{}, options);
    return inner_->launch(name, body, traffic, options);
  }
  std::uint32_t useful_workers() const override { return inner_->useful_workers(); }
  bool waiting_takes_a_processor() const override { return inner_->waiting_takes_a_processor(); }
  Result<SharedBuffer> share(std::uint64_t bytes) override { return inner_->share(bytes); }
  Result<BufferHandle> keep(std::span<const std::byte> content) override { return inner_->keep(content); }
  Status fetch(BufferHandle handle, std::uint64_t offset, std::span<std::byte> bytes) override {
    return inner_->fetch(handle, offset, bytes);
  }
  Status release(BufferHandle handle) override { return inner_->release(handle); }

 private:
  const std::unique_ptr<WorkloadPlace> inner_ = make_cpu_place(3).value();
};

TEST(workload_bodies, a_rank_actor_that_fails_is_named_and_the_others_end) {
  FailingPlace place;
  const auto edges = random_edges(500, 3000, 4).value();
  const auto result = run_pagerank(place, 500, edges, {.workers = 3});
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message().find("'pagerank-1'"), std::string::npos) << result.error().message();
}

// A place at whose n-th call somebody presses Ctrl-C.
class InterruptedPlace final : public WorkloadPlace {
 public:
  InterruptedPlace(std::unique_ptr<WorkloadPlace> inner, int interrupted_call)
      : inner_(std::move(inner)), calls_left_(interrupted_call) {}
  ~InterruptedPlace() override { clear_interrupt(); }

  std::string name() const override { return inner_->name(); }
  Runtime& runtime() override { return inner_->runtime(); }
  Result<ActorHandle> launch(const std::string& name, WorkloadBody body, Traffic traffic,
                             const ActorOptions& options) override {
    count();
    return inner_->launch(name, body, traffic, options);
  }
  std::uint32_t useful_workers() const override { return inner_->useful_workers(); }
  bool waiting_takes_a_processor() const override { return inner_->waiting_takes_a_processor(); }
  Result<SharedBuffer> share(std::uint64_t bytes) override {
    count();
    return inner_->share(bytes);
  }
  Result<BufferHandle> keep(std::span<const std::byte> content) override {
    count();
    return inner_->keep(content);
  }
  Status fetch(BufferHandle handle, std::uint64_t offset, std::span<std::byte> bytes) override {
    is_at_its_end_ = true;
    return inner_->fetch(handle, offset, bytes);
  }
  Status release(BufferHandle handle) override { return inner_->release(handle); }

  // Whether the call came: a run that has fewer is not interrupted.
  [[nodiscard]] bool was_interrupted() const { return calls_left_ <= 0; }
  [[nodiscard]] bool is_at_its_end() const { return is_at_its_end_; }

 private:
  void count() {
    if (--calls_left_ == 0) request_interrupt();
  }
  const std::unique_ptr<WorkloadPlace> inner_;
  int calls_left_;
  bool is_at_its_end_ = false;
};

// At every call that a workload makes of its place, down to the last one before its messages: what follows is refused,
// not finished.
template <class Run>
int expect_interrupted_at_every_call(Run&& run) {
  int call = 1;
  for (;; ++call) {
    InterruptedPlace place(make_cpu_place(2).value(), call);
    const auto result = run(place);
    if (!place.was_interrupted()) {
      EXPECT_TRUE(result.has_value()) << result.error().message();
      return call - 1;
    }
    EXPECT_FALSE(result.has_value()) << "interrupted at call " << call << ", and went on to its end";
    if (result.has_value()) return call;
    EXPECT_EQ(result.error().kind(), ErrorKind::interrupted) << result.error().message();
    EXPECT_FALSE(place.is_at_its_end());
  }
}

TEST(workload_interrupts, pagerank_hears_ctrl_c_between_its_steps) {
  const auto edges = random_edges(300, 2000, 4).value();
  // Launches of two actors and keep; from there on only messages.
  EXPECT_EQ(expect_interrupted_at_every_call(
                [&](WorkloadPlace& place) { return run_pagerank(place, 300, edges, {.workers = 2}); }),
            3);
  request_interrupt();
  const auto drawn = random_edges(300, 2000, 4);
  clear_interrupt();
  ASSERT_FALSE(drawn.has_value());
  EXPECT_EQ(drawn.error().kind(), ErrorKind::interrupted);
}

TEST(workload_interrupts, anomaly_hears_ctrl_c_between_its_batches) {
  const std::vector<float> signal = example_signal(5000, 5).value();
  EXPECT_EQ(expect_interrupted_at_every_call(
                [&](WorkloadPlace& place) { return run_anomaly(place, signal, {.batch = 100, .runs = 1}); }),
            4);
  request_interrupt();
  const auto drawn = example_signal(5000, 5);
  clear_interrupt();
  ASSERT_FALSE(drawn.has_value());
  EXPECT_EQ(drawn.error().kind(), ErrorKind::interrupted);
}

// While it works on one run of many batches, as on a long signal: a thread presses the key.
TEST(workload_interrupts, anomaly_is_interrupted_in_the_middle_of_a_run) {
  const std::vector<float> signal = example_signal(2'000'000, 5).value();
  const auto place = make_cpu_place(1).value();
  std::atomic<bool> is_over = false;
  std::thread presser([&] {
    const auto batches = [&] {
      const auto detector = place->runtime().find("detector");
      return detector ? (*detector)->telemetry().received : 0;
    };
    while (!is_over && batches() < 2000) std::this_thread::yield();
    request_interrupt();
  });
  // A batch of one point against a window of thousands: minutes, if it went on to its end.
  const auto result = run_anomaly(*place, signal, {.batch = 1, .warm_up_batches = 1, .runs = 1});
  is_over = true;
  presser.join();
  clear_interrupt();
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind(), ErrorKind::interrupted);
}

TEST(workload_interrupts, extended_hears_ctrl_c_wherever_it_is) {
  ExtendedOptions extended;
  extended.latency_samples = 50;
  extended.warm_up = 10;
  extended.message_counts = {100};
  extended.number_counts = {10};
  extended.actor_counts = {1, 2};
  extended.messages_per_actor = 100;
  EXPECT_GE(expect_interrupted_at_every_call([&](WorkloadPlace& place) { return run_extended(place, extended); }), 6);
}

// Two sines (libm's here), a noise of at most 0.6, and in one of a hundred points a peak of 3 to 5 up or down.
TEST(workload_bodies, the_example_signal_is_two_sines_with_noise_and_peaks) {
  constexpr std::uint32_t points = 20000;
  const std::vector<float> signal = example_signal(points, 11).value();
  ASSERT_EQ(signal.size(), points);
  std::uint32_t up = 0, down = 0;
  double square = 0;
  for (std::uint32_t t = 0; t < points; ++t) {
    const double sines = std::sin(2 * M_PI * t / 1000) + 0.5 * std::sin(2 * M_PI * t / 100);
    const double rest = static_cast<double>(signal[t]) - sines;
    if (std::abs(rest) <= 0.6) {
      square += rest * rest;
      continue;
    }
    EXPECT_GE(std::abs(rest), 3 - 0.6) << t;
    EXPECT_LE(std::abs(rest), 5 + 0.6) << t;
    ++(rest > 0 ? up : down);
  }
  // Within five standard deviations of 100 each, and of a noise of 0.1.
  EXPECT_NEAR(up, 100, 50);
  EXPECT_NEAR(down, 100, 50);
  EXPECT_NEAR(square / (points - up - down), 0.01, 0.0006);
  EXPECT_EQ(example_signal(100, 11).value(), std::vector<float>(signal.begin(), signal.begin() + 100));
}

// An even signal has four peaks: these are listed, by their place in the whole signal.
TEST(workload_bodies, anomalies_are_counted_and_listed_by_their_place_in_the_signal) {
  std::vector<float> signal(4000);
  for (std::size_t t = 0; t < signal.size(); ++t) signal[t] = t % 2 == 0 ? 0.1f : -0.1f;
  const std::vector<std::uint32_t> peaks = {2003, 2499, 2500, 3999};
  for (const std::uint32_t t : peaks) signal[t] += 20;
  const auto place = make_cpu_place(1).value();
  const auto found = run_anomaly(*place, signal, {.batch = 500, .window = 1000, .runs = 2});
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->batches, 8U);
  EXPECT_EQ(found->anomalies, peaks.size());
  EXPECT_EQ(found->first_indices, peaks);
}

// A graph that is not worth an actor has one all the same. A ring of nodes has equal ranks.
TEST(workload_bodies, the_smallest_graph_has_an_actor) {
  const std::vector<Edge> ring = {{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  const auto place = make_cpu_place(2).value();
  const auto found = run_pagerank(*place, 4, ring, {});
  ASSERT_TRUE(found.has_value()) << found.error().message();
  EXPECT_EQ(found->workers, 1U);
  EXPECT_EQ(found->fastest.steps, 1U) << "places without a node do not count as changes";
  ASSERT_EQ(found->ranks.size(), 4U);
  for (const double rank : found->ranks) EXPECT_NEAR(rank, 0.25, 1e-12);
}

// 2000 edges and nodes are worth an actor, and the last thread is left to the one who asks.
TEST(workload_bodies, a_graph_has_as_many_actors_as_are_worth_it_unless_told_otherwise) {
  const auto edges = random_edges(500, 7500, 4).value();
  for (const auto& [threads, actors] : {std::pair{8u, 4u}, {4u, 3u}, {2u, 1u}}) {
    const auto place = make_cpu_place(threads).value();
    const auto found = run_pagerank(*place, 500, edges, {});
    ASSERT_TRUE(found.has_value()) << found.error().message();
    EXPECT_EQ(found->workers, actors) << threads << " threads";
  }
}

TEST(workload_bodies, random_edges_are_distinct_and_have_no_loops) {
  const auto edges = random_edges(60, 1700, 9);
  ASSERT_TRUE(edges.has_value()) << edges.error().message();
  ASSERT_EQ(edges->size(), 1700U);
  for (std::size_t i = 0; i < edges->size(); ++i) {
    const Edge edge = (*edges)[i];
    EXPECT_NE(edge.source, edge.target);
    EXPECT_LT(std::max(edge.source, edge.target), 60U);
    if (i > 0) {
      EXPECT_LT(std::pair((*edges)[i - 1].source, (*edges)[i - 1].target), std::pair(edge.source, edge.target));
    }
  }
  EXPECT_FALSE(random_edges(60, 1800, 9).has_value());
}

TEST(workload_bodies, random_edges_are_drawn_from_two_nodes_on) {
  const auto both = random_edges(2, 2, 9);
  ASSERT_TRUE(both.has_value()) << both.error().message();
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ(std::pair((*both)[0].source, (*both)[0].target), std::pair(0U, 1U));
  EXPECT_EQ(std::pair((*both)[1].source, (*both)[1].target), std::pair(1U, 0U));
  EXPECT_EQ(random_edges(1, 1, 9).error().message(), "1 edges between 1 nodes: at most 0 are drawn");
}

}  // namespace
}  // namespace cingulum::ring
