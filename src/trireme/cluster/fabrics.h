// The fabrics behind the list in topology.cpp, by file, and what they have in common.
#pragma once
#include <memory>

#include "trireme/cluster/topology.h"

namespace trireme::cluster {

std::unique_ptr<Fabric> star_fabric(const Cluster& cluster);      // star_fabric.cpp: flat and star
std::unique_ptr<Fabric> ring_fabric(const Cluster& cluster);      // torus_fabric.cpp
std::unique_ptr<Fabric> torus_fabric(const Cluster& cluster);     // torus_fabric.cpp
std::unique_ptr<Fabric> fat_tree_fabric(const Cluster& cluster);  // fat_tree_fabric.cpp
std::unique_ptr<Fabric> rail_fabric(const Cluster& cluster);      // rail_fabric.cpp

// A link as its class says. α is paid on the way up; the way down is free.
Link up_link(const Cluster& cluster, int link_class);
Link down_link(const Cluster& cluster, int link_class);

}  // namespace trireme::cluster
