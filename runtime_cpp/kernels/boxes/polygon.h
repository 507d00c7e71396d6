// Polygons of the plane: areas, convex hulls, intersections. Coordinates are numbers, or numbers with a derivative.
#pragma once

#include <cstdint>

#include "core/host_device.h"
#include "math/math.h"

namespace diopi::kernels {

// A number and its derivative by something.
struct Dual {
    double value;
    double slope;

    Dual() = default;
    DIOPI_HD Dual(double number, double derivative = 0) : value(number), slope(derivative) {}
};

DIOPI_HD inline Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
DIOPI_HD inline Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
DIOPI_HD inline Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
DIOPI_HD inline Dual operator/(Dual a, Dual b) {
    const double quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
}
DIOPI_HD inline double value_of(double number) { return number; }
DIOPI_HD inline double value_of(const Dual& number) { return number.value; }

template <class N>
struct Point {
    N x, y;
};

// What a hull is taken of.
constexpr int kSetPoints = 9;

// Room for what is left of a hull of nine points, or of any quadrilateral, within another quadrilateral.
constexpr int kMaxCorners = 20;

template <class N>
struct Polygon {
    Point<N> at[kMaxCorners];
    int count = 0;

    DIOPI_HD void add(const Point<N>& point) {
        if (count < kMaxCorners) at[count++] = point;
    }
    DIOPI_HD const Point<N>& after(int i) const { return at[i + 1 == count ? 0 : i + 1]; }
};

// x1, y1, x2, y2, ...
DIOPI_HD inline Polygon<double> polygon_of(const double* numbers, int count) {
    Polygon<double> result;
    for (int i = 0; i < count; ++i) result.add({numbers[2 * i], numbers[2 * i + 1]});
    return result;
}

// The angle is in radians from the x axis towards the y axis.
DIOPI_HD inline Polygon<double> rectangle(double x, double y, double width, double height, double angle) {
    const double cos = math::cos(angle), sin = math::sin(angle);
    Polygon<double> result;
    for (int i = 0; i < 4; ++i) {
        const double a = (i == 1 || i == 2 ? width : -width) / 2;
        const double b = (i >= 2 ? height : -height) / 2;
        result.add({x + a * cos - b * sin, y + a * sin + b * cos});
    }
    return result;
}

// Positive where b lies to the left of the way from the origin to a.
template <class N>
DIOPI_HD inline N cross(const Point<N>& origin, const Point<N>& a, const Point<N>& b) {
    return (a.x - origin.x) * (b.y - origin.y) - (a.y - origin.y) * (b.x - origin.x);
}

// Positive where the corners run from the x axis towards the y axis; zero for less than three.
template <class N>
DIOPI_HD inline N signed_area(const Polygon<N>& polygon) {
    N sum(0);
    for (int i = 0; i < polygon.count; ++i) {
        const Point<N>&a = polygon.at[i], &b = polygon.after(i);
        sum = sum + (a.x * b.y - a.y * b.x);
    }
    return sum / N(2);
}

template <class N>
DIOPI_HD inline N area(const Polygon<N>& polygon) {
    const N found = signed_area(polygon);
    return value_of(found) < 0 ? N(0) - found : found;
}

// The corners in the order of positive area.
template <class N>
DIOPI_HD inline Polygon<N> counterclockwise(const Polygon<N>& polygon) {
    if (value_of(signed_area(polygon)) >= 0) return polygon;
    Polygon<N> result;
    for (int i = polygon.count - 1; i >= 0; --i) result.add(polygon.at[i]);
    return result;
}

// The part to the left of the way from start to end.
template <class N>
DIOPI_HD inline Polygon<N> left_part(const Polygon<N>& polygon, const Point<N>& start, const Point<N>& end) {
    Polygon<N> kept;
    for (int i = 0; i < polygon.count; ++i) {
        const Point<N>&a = polygon.at[i], &b = polygon.after(i);
        const N beside_a = cross(start, end, a), beside_b = cross(start, end, b);
        const double first = value_of(beside_a), second = value_of(beside_b);
        if (first >= 0) kept.add(a);
        if ((first > 0 && second < 0) || (first < 0 && second > 0)) {
            const N share = beside_a / (beside_a - beside_b);
            kept.add({a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)});
        }
    }
    return kept;
}

// The least and the greatest coordinate of each axis.
struct Extent {
    double low[2] = {math::infinity<double>, math::infinity<double>};
    double high[2] = {-math::infinity<double>, -math::infinity<double>};
};

template <class N>
DIOPI_HD inline Extent extent_of(const Polygon<N>& polygon) {
    Extent extent;
    for (int i = 0; i < polygon.count; ++i) {
        const double at[] = {value_of(polygon.at[i].x), value_of(polygon.at[i].y)};
        for (int d = 0; d < 2; ++d) {
            extent.low[d] = math::min(extent.low[d], at[d]);
            extent.high[d] = math::max(extent.high[d], at[d]);
        }
    }
    return extent;
}

DIOPI_HD inline bool apart(const Extent& a, const Extent& b) {
    return a.high[0] < b.low[0] || b.high[0] < a.low[0] || a.high[1] < b.low[1] || b.high[1] < a.low[1];
}

// What two convex polygons share (Sutherland and Hodgman); no corners where they do not touch.
template <class N>
DIOPI_HD inline Polygon<N> intersection(const Polygon<N>& first, const Polygon<N>& second) {
    if (apart(extent_of(first), extent_of(second))) return {};
    Polygon<N> kept = counterclockwise(first);
    const Polygon<N> window = counterclockwise(second);
    for (int i = 0; i < window.count; ++i) kept = left_part(kept, window.at[i], window.after(i));
    return kept;
}

template <class N>
DIOPI_HD inline N shared_area(const Polygon<N>& first, const Polygon<N>& second) {
    return signed_area(intersection(first, second));
}

// The shared area over that of both together, or over that of the first; zero where there is none.
DIOPI_HD inline double overlap(const Polygon<double>& first, const Polygon<double>& second, bool of_first) {
    const double shared = shared_area(first, second), own = area(first);
    const double whole = of_first ? own : own + area(second) - shared;
    return whole > 0 ? shared / whole : 0;
}

// The centre x, y, the width, the height and the angle.
DIOPI_HD inline Polygon<double> rotated_box(const double* box) {
    return rectangle(box[0], box[1], box[2], box[3], box[4]);
}

// A box in space, the centre x, y, z, the sizes and the angle around z, seen from above.
DIOPI_HD inline Polygon<double> box_from_above(const double* box, bool turned) {
    return rectangle(box[0], box[1], box[3], box[4], turned ? box[6] : 0);
}

// The overlap of boxes x1, y1, x2, y2 whose sides are longer by `offset`; NaN where neither has an area.
DIOPI_HD inline double upright_overlap(const double* a, const double* b, double offset, bool of_first) {
    double shared = 1, own = 1, other = 1;
    for (int d = 0; d < 2; ++d) {
        shared *= math::max(math::min(a[2 + d], b[2 + d]) - math::max(a[d], b[d]) + offset, 0.0);
        own *= a[2 + d] - a[d] + offset;
        other *= b[2 + d] - b[d] + offset;
    }
    return shared / (of_first ? own : own + other - shared);
}

// The convex hull, of positive area; points on its sides are no corners (Andrew's monotone chain).
template <class N>
DIOPI_HD inline Polygon<N> hull(Polygon<N> points) {
    for (int i = 1; i < points.count; ++i) {
        const Point<N> moved = points.at[i];
        const double x = value_of(moved.x), y = value_of(moved.y);
        int j = i;
        for (; j > 0; --j) {
            const Point<N>& other = points.at[j - 1];
            if (value_of(other.x) < x || (value_of(other.x) == x && value_of(other.y) <= y)) break;
            points.at[j] = other;
        }
        points.at[j] = moved;
    }
    Polygon<N> result;
    for (int side = 0; side < 2; ++side) {
        const int start = result.count;
        for (int i = 0; i < points.count; ++i) {
            const Point<N>& next = points.at[side == 0 ? i : points.count - 1 - i];
            while (result.count - start >= 2 &&
                   value_of(cross(result.at[result.count - 2], result.at[result.count - 1], next)) <= 0)
                --result.count;
            result.add(next);
        }
        if (result.count > start) --result.count;  // the other side begins with it
    }
    return result;
}

// Whether a point lies within, by the number of sides that a ray to the right meets.
DIOPI_HD inline bool holds(const Polygon<double>& polygon, double x, double y) {
    bool inside = false;
    for (int i = 0; i < polygon.count; ++i) {
        const Point<double>&a = polygon.at[i], &b = polygon.after(i);
        if ((a.y > y) == (b.y > y)) continue;
        if (a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y) > x) inside = !inside;
    }
    return inside;
}

}  // namespace diopi::kernels
