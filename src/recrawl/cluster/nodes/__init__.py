"""The machines of a cluster: a worker for every shard, on the node where it shall be. Only this package knows Ray.

balance        which shard runs on which node
supervisor     lets a worker run for every shard
ray_actors     workers and coordinator as Ray actors
ray_nodes      a node of the cluster on this machine
"""
