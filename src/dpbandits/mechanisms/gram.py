import math
import numpy as np
def pair_widths(dim):
    out=[]
    for i in range(dim):
        for j in range(i,dim): out.append(1.5*math.sqrt(2) if i==j else 1.5)
    return np.array(out+[1.5*math.sqrt(2)]*dim)
def augmented_widths(dim):
    out=[]
    for i in range(dim):
        for j in range(i,dim): out.append(math.sqrt(2) if i==j else 1.)
    return np.array(out+[1.]*dim)
def operator_norm(dim):
    g=np.random.default_rng(0); s=[]
    for _ in range(400):
        z=g.normal(size=(dim,dim)); z=(z+z.T)/math.sqrt(2); s.append(np.abs(np.linalg.eigvalsh(z)).max())
    return float(np.mean(s)+3*np.std(s)/20)
