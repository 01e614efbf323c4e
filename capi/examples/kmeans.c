/* Finds clusters (k-means) in points that are spread over the ranks, with an allreduce of sums in
 * each step. Rank 0 compares the clusters with those that it finds alone.
 *
 *   cc -o kmeans capi/examples/kmeans.c $(pkg-config --cflags --libs ayre) -lm
 *   ayre run -n 4 -- ./kmeans engine/examples/data/iris.csv 3
 *
 * A line of the file is a point. Its first line is a heading, and its last column a label: both are
 * skipped.
 */
#include <ayre.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 100, WIDTH_MAX = 64 };
/* Sums in another order differ by less. */
static const double NEAR = 1e-9;

static void check(int64_t code, const char *call) {
    if (code < 0) {
        fprintf(stderr, "%s: %s\n", call, ayre_detail());
        exit(1);
    }
}

static void stop(const char *why) {
    fprintf(stderr, "kmeans: %s\n", why);
    exit(1);
}

static void *memory(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) {
        stop("no memory");
    }
    return memory;
}

/* Points with `width` coordinates, one behind the other. */
struct points {
    double *at;
    size_t count;
    size_t width;
};

/* The numbers of a line, but the last. Returns how many there are. */
static size_t read_point(char *line, double *point) {
    size_t width = 0;
    char *last = strrchr(line, ',');
    if (last == NULL) {
        stop("a line of one column");
    }
    *last = '\0';
    for (char *rest = line; rest != NULL && *rest != '\0'; width++) {
        char *end = rest;
        if (width == WIDTH_MAX) {
            stop("more than 64 columns");
        }
        point[width] = strtod(rest, &end);
        if (end == rest || (*end != ',' && *end != '\0')) {
            stop("a column that is no number");
        }
        rest = *end == ',' ? end + 1 : NULL;
    }
    return width;
}

static struct points read_points(const char *path) {
    struct points points = {NULL, 0, 0};
    char line[4096];
    double point[WIDTH_MAX];
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(line, sizeof line, file) == NULL) {
        perror(path);
        exit(1);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[strspn(line, " \r\n")] == '\0') {
            continue;
        }
        size_t width = read_point(line, point);
        if (width == 0 || (points.count > 0 && width != points.width)) {
            stop("lines of different lengths");
        }
        points.width = width;
        double *more = (double *)realloc(points.at, (points.count + 1) * width * sizeof *more);
        if (more == NULL) {
            stop("no memory");
        }
        memcpy(more + points.count * width, point, width * sizeof *point);
        points.at = more;
        points.count++;
    }
    fclose(file);
    return points;
}

static size_t nearest(const double *centres, size_t clusters, const double *point, size_t width) {
    size_t best = 0;
    double least = INFINITY;
    for (size_t cluster = 0; cluster < clusters; cluster++) {
        double distance = 0;
        for (size_t column = 0; column < width; column++) {
            double apart = centres[cluster * width + column] - point[column];
            distance += apart * apart;
        }
        if (distance < least) {
            least = distance;
            best = cluster;
        }
    }
    return best;
}

/* For each cluster, the sums of the coordinates of its points, and their number: of every `step`th
 * point from `first` on. */
static void add_up(const struct points *points, size_t first, size_t step, const double *centres,
                   size_t clusters, double *sums) {
    size_t width = points->width;
    memset(sums, 0, clusters * (width + 1) * sizeof *sums);
    for (size_t at = first; at < points->count; at += step) {
        const double *point = points->at + at * width;
        double *sum = sums + nearest(centres, clusters, point, width) * (width + 1);
        for (size_t column = 0; column < width; column++) {
            sum[column] += point[column];
        }
        sum[width] += 1;
    }
}

/* Moves each centre to the middle of its cluster. Returns the largest step of a coordinate. */
static double advance(double *centres, size_t clusters, size_t width, const double *sums) {
    double moved = 0;
    for (size_t cluster = 0; cluster < clusters; cluster++) {
        const double *sum = sums + cluster * (width + 1);
        for (size_t column = 0; column < width && sum[width] > 0; column++) {
            double *centre = &centres[cluster * width + column];
            moved = fmax(moved, fabs(*centre - sum[column] / sum[width]));
            *centre = sum[column] / sum[width];
        }
    }
    return moved;
}

/* Finds clusters from the first centres on; alone, or with the ranks of a group. Returns the number
 * of steps. */
static int find(ayre_port *port, const ayre_group *group, const struct points *points,
                double *centres, size_t clusters) {
    size_t first = group == NULL ? 0 : (size_t)ayre_port_rank(port);
    size_t step = group == NULL ? 1 : (size_t)ayre_port_size(port);
    size_t count = clusters * (points->width + 1);
    double *sums = (double *)memory(count, sizeof *sums);
    int steps = 0;
    double moved = INFINITY;
    while (steps < STEPS_MAX && moved >= NEAR) {
        add_up(points, first, step, centres, clusters, sums);
        if (group != NULL) {
            check(ayre_allreduce(port, group, sums, count, AYRE_F64, AYRE_COMBINE_SUM),
                  "ayre_allreduce");
        }
        moved = advance(centres, clusters, points->width, sums);
        steps++;
    }
    free(sums);
    return steps;
}

/* Some of the points, as the first centres. */
static double *first_centres(const struct points *points, size_t clusters) {
    double *centres = (double *)memory(clusters * points->width, sizeof *centres);
    for (size_t cluster = 0; cluster < clusters; cluster++) {
        size_t at = points->count / clusters * cluster;
        memcpy(centres + cluster * points->width, points->at + at * points->width,
               points->width * sizeof *centres);
    }
    return centres;
}

static void print(const struct points *points, const double *centres, size_t clusters) {
    double *sums = (double *)memory(clusters * (points->width + 1), sizeof *sums);
    add_up(points, 0, 1, centres, clusters, sums);
    for (size_t cluster = 0; cluster < clusters; cluster++) {
        printf("cluster %zu, %.0f points, at", cluster,
               sums[cluster * (points->width + 1) + points->width]);
        for (size_t column = 0; column < points->width; column++) {
            printf(" %.2f", centres[cluster * points->width + column]);
        }
        puts("");
    }
    free(sums);
}

static bool is_near(const double *one, const double *other, size_t count) {
    size_t at = 0;
    while (at < count && fabs(one[at] - other[at]) <= NEAR) {
        at++;
    }
    return at == count;
}

int main(int count, char **arguments) {
    if (count < 2) {
        stop("usage: kmeans FILE.csv [CLUSTERS]");
    }
    struct points points = read_points(arguments[1]);
    size_t clusters = count > 2 ? strtoul(arguments[2], NULL, 10) : 3;
    if (clusters == 0 || clusters > points.count) {
        stop("as many clusters as points at most, and one at least");
    }
    ayre_port *port;
    ayre_group *all;
    check(ayre_port_join(NULL, &port), "ayre_port_join");
    check(ayre_messenger_start(port, NULL), "ayre_messenger_start");
    check(ayre_group_of_all(port, "all", &all), "ayre_group_of_all");
    double *centres = first_centres(&points, clusters);
    int steps = find(port, all, &points, centres, clusters);
    if (ayre_port_rank(port) == 0) {
        double *alone = first_centres(&points, clusters);
        int steps_alone = find(port, NULL, &points, alone, clusters);
        if (steps != steps_alone || !is_near(centres, alone, clusters * points.width)) {
            stop("one process finds other clusters");
        }
        print(&points, centres, clusters);
        printf("%d ranks, %d steps, the clusters that one process finds\n", ayre_port_size(port),
               steps);
        free(alone);
    }
    check(ayre_group_barrier(port, all), "ayre_group_barrier");
    ayre_group_close(all);
    check(ayre_port_leave(port), "ayre_port_leave");
    free(centres);
    free(points.at);
    return 0;
}
