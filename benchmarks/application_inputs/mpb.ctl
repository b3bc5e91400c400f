; Bands of a cubic lattice of dielectric spheres: transforms of a grid that is spread over all ranks
(set! num-bands 6)
(set! resolution 16)
(set! geometry-lattice (make lattice (size 1 1 1)))
(set! geometry (list (make sphere (center 0 0 0) (radius 0.35) (material (make dielectric (epsilon 11.56))))))
(set! k-points (list (vector3 0.1 0 0) (vector3 0.3 0.1 0) (vector3 0.5 0.2 0) (vector3 0.5 0.5 0)))
(set! tolerance 1e-6)
(run)
