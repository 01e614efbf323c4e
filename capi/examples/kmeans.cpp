/* Finds clusters (k-means) in points that are spread over the ranks, with an allreduce of sums in
 * each step. A rank tells rank 0 how many points it has in each cluster, by an active message.
 * Rank 0 compares the clusters with those that it finds alone.
 *
 *   c++ -std=c++17 -o kmeans capi/examples/kmeans.cpp $(pkg-config --cflags --libs ayre)
 *   ayre run -n 4 -- ./kmeans engine/examples/data/iris.csv 3
 *
 * A line of the file is a point. Its first line is a heading, and its last column a label: both are
 * skipped.
 */
#include <algorithm>
#include <ayre.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

using point = std::vector<double>;

constexpr int STEPS_MAX = 100;
/* Sums in another order differ by less. */
constexpr double NEAR = 1e-9;

[[noreturn]] static void stop(const char *why) {
    std::fprintf(stderr, "kmeans: %s\n", why);
    std::exit(1);
}

static std::vector<point> read_points(const char *path) {
    std::ifstream file(path);
    std::vector<point> points;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::istringstream columns(line.substr(0, line.rfind(',')));
        point one;
        for (std::string column; std::getline(columns, column, ',');) {
            one.push_back(std::strtod(column.c_str(), nullptr));
        }
        if (!points.empty() && one.size() != points[0].size()) {
            stop("lines of different lengths");
        }
        points.push_back(one);
    }
    return points;
}

static std::size_t nearest(const std::vector<point> &centres, const point &to) {
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t cluster = 0; cluster < centres.size(); cluster++) {
        double distance = 0;
        for (std::size_t column = 0; column < to.size(); column++) {
            distance += std::pow(centres[cluster][column] - to[column], 2);
        }
        if (distance < least) {
            least = distance;
            best = cluster;
        }
    }
    return best;
}

/* The points of one rank. */
struct share {
    const std::vector<point> &points;
    std::size_t first;
    std::size_t step;
};

/* For each cluster, the sums of the coordinates of its points, and their number. */
static std::vector<double> add_up(const share &of, const std::vector<point> &centres) {
    std::size_t width = of.points[0].size();
    std::vector<double> sums(centres.size() * (width + 1));
    for (std::size_t at = of.first; at < of.points.size(); at += of.step) {
        double *sum = &sums[nearest(centres, of.points[at]) * (width + 1)];
        for (std::size_t column = 0; column < width; column++) {
            sum[column] += of.points[at][column];
        }
        sum[width] += 1;
    }
    return sums;
}

/* Moves each centre to the middle of its cluster. Returns the largest step of a coordinate. */
static double advance(std::vector<point> &centres, const std::vector<double> &sums) {
    double moved = 0;
    const double *sum = sums.data();
    for (point &centre : centres) {
        double count = sum[centre.size()];
        for (double &column : centre) {
            double middle = count > 0 ? *sum / count : column;
            moved = std::max(moved, std::fabs(column - middle));
            column = middle;
            sum++;
        }
        sum++;
    }
    return moved;
}

/* Finds clusters, alone or with the ranks of a group, and counts the steps. */
static std::vector<point> find(const share &of, std::size_t clusters, ayre::group *group,
                               int &steps) {
    std::vector<point> centres;
    for (std::size_t cluster = 0; cluster < clusters; cluster++) {
        centres.push_back(of.points[of.points.size() / clusters * cluster]);
    }
    double moved = std::numeric_limits<double>::infinity();
    for (steps = 0; steps < STEPS_MAX && moved >= NEAR; steps++) {
        std::vector<double> sums = add_up(of, centres);
        if (group != nullptr) {
            group->run(ayre::collective::allreduce(sums, AYRE_COMBINE_SUM)).value();
        }
        moved = advance(centres, sums);
    }
    return centres;
}

static bool are_near(const std::vector<point> &some, const std::vector<point> &others) {
    for (std::size_t cluster = 0; cluster < some.size(); cluster++) {
        for (std::size_t column = 0; column < some[cluster].size(); column++) {
            if (std::fabs(some[cluster][column] - others[cluster][column]) > NEAR) {
                return false;
            }
        }
    }
    return true;
}

/* How many points are in each cluster, of how many ranks. */
struct tally {
    std::vector<std::uint64_t> counts;
    int ranks = 0;

    void add(const std::vector<std::uint64_t> &more) {
        counts.resize(more.size());
        for (std::size_t cluster = 0; cluster < more.size(); cluster++) {
            counts[cluster] += more[cluster];
        }
        ranks++;
    }
};

static std::vector<std::uint64_t> count_points(const share &of, const std::vector<point> &centres) {
    std::size_t width = of.points[0].size();
    std::vector<double> sums = add_up(of, centres);
    std::vector<std::uint64_t> counts;
    for (std::size_t at = width; at < sums.size(); at += width + 1) {
        counts.push_back(static_cast<std::uint64_t>(sums[at]));
    }
    return counts;
}

int main(int count, char **arguments) {
    if (count < 2) {
        stop("usage: kmeans FILE.csv [CLUSTERS]");
    }
    std::vector<point> points = read_points(arguments[1]);
    std::size_t clusters = count > 2 ? std::strtoul(arguments[2], nullptr, 10) : 3;
    if (clusters == 0 || clusters > points.size()) {
        stop("as many clusters as points at most, and one at least");
    }
    tally tally; /* what a handler uses stays longer than its port */
    ayre::port port = ayre::port::join().value();
    port.start_messenger().value();
    auto add = [&](ayre::call &call) {
        std::vector<std::uint64_t> counts(call.payload().size() / sizeof(std::uint64_t));
        std::memcpy(counts.data(), call.payload().data(), call.payload().size());
        tally.add(counts);
    };
    std::uint32_t add_id = port.register_handler("add", 0, add).value();
    ayre::group all = port.group_of_all("all").value();
    share own = {points, static_cast<std::size_t>(port.rank()),
                 static_cast<std::size_t>(port.size())};
    int steps = 0;
    std::vector<point> centres = find(own, clusters, &all, steps);
    port.call(0, add_id, {}, count_points(own, centres)).value();
    if (port.rank() == 0) {
        while (tally.ranks < port.size()) {
            port.wait().value();
        }
        int steps_alone = 0;
        std::vector<point> alone = find({points, 0, 1}, clusters, nullptr, steps_alone);
        if (steps != steps_alone || !are_near(centres, alone)) {
            stop("one process finds other clusters");
        }
        for (std::size_t cluster = 0; cluster < clusters; cluster++) {
            std::printf("cluster %zu, %llu points, at", cluster,
                        static_cast<unsigned long long>(tally.counts[cluster]));
            for (double column : centres[cluster]) {
                std::printf(" %.2f", column);
            }
            std::puts("");
        }
        std::printf("%d ranks, %d steps, the clusters that one process finds\n", port.size(),
                    steps);
    }
    all.run(ayre::collective::barrier()).value();
    port.leave().value();
}
