"""Pairs written by hand: kind | reference | prediction | label, which is y (yes), n (no) or u (unknown)."""

PAIRS = r"""
integer | 42 | 42 | y
integer | 42 | 42. | y
integer | 42 | 42.0 | y
integer | 42 | 42.00 | y
integer | 42 | +42 | y
integer | 42 | 43 | n
integer | 42 | -42 | n
integer | 42 | 4 2/1 | n
integer | 42 | 24 | n
integer | 42 | 420 | n
integer | 42 | 42.5 | n
integer | -7 | \-7 | y
integer | -7 | −7 | y
integer | -7 | -7.0 | y
integer | -7 | 7 | n
integer | 007 | 7 | y
integer | 0 | -0 | y
integer | 0 | 0.0 | y
integer | 10 | 6+4 | y
integer | 10 | 2 \cdot 5 | y
integer | 10 | 5\times2 | y
integer | 10 | \frac{20}{2} | y
integer | 10 | \sqrt{100} | y
integer | 10 | 2^3+2 | y
integer | 10 | ten | y
integer | 12 | twelve | y
integer | 12 | twenty | n
integer | 1 | 0.999999 | n
integer | 1 | 0.\overline{9} | y
integer | 123456789012345678901234567890 | 123456789012345678901234567890 | y
integer | 123456789012345678901234567890 | 123456789012345678901234567891 | n
integer | 123456789012345678901234567890 | 123,456,789,012,345,678,901,234,567,890 | y
integer | 2^{100} | 1267650600228229401496703205376 | y
integer | 2^{100} | 1267650600228229401496703205377 | n
integer | 5^{1000000000} | 5^{1000000000} | y
integer | 5^{1000000000} | 5^{999999999}\cdot 5 | y
integer | 5^{1000000000} | 5^{1000000001} | n
integer | 2004! | 2004! | y
integer | \frac{1}{2004!} | \frac{1}{2006!} | n
integer | \frac{1}{2^{99}} | \frac{1}{2^{98}} | n
integer | 10! | 3628800 | y
integer | 10! | 3628801 | n
integer | 2^{10}-1 | 1023 | y
integer | 3^{2^3} | 6561 | y
integer | 3^{2^3} | 729 | n
integer | \binom{10}{3} | 120 | y
integer | \dbinom{10}{3} | \binom{10}{7} | y
thousands | 1000 | 1,000 | y
thousands | 1000 | 1{,}000 | y
thousands | 1000 | 1\,000 | y
thousands | 1000 | 1 000 | y
thousands | 1000 | 1,\!000 | y
thousands | 1000 | 1,00 | n
thousands | 1000000 | 1,000,000 | y
thousands | 1,234.5 | 1234.5 | y
thousands | 1,234.50 | 1234.5 | y
thousands | 12,345 | 12.345 | n
thousands | 14916 | 14{,}916 | y
thousands | 32349 | 32, 349 | n
thousands | 1000 | 10,000 | n
decimal | 0.5 | .5 | y
decimal | 0.5 | 0.50 | y
decimal | 0.5 | 1/2 | y
decimal | 0.5 | \frac12 | y
decimal | 0.5 | 0,5 | y
decimal | 0.5 | 0.51 | n
decimal | 0.5 | 5 | n
decimal | \frac{1}{3} | 0.333333 | y
decimal | \frac{1}{3} | 0.33333333333 | y
decimal | \frac{1}{3} | 0.33 | n
decimal | \frac{1}{3} | 0.3 | n
decimal | \frac{2}{3} | 0.666667 | y
decimal | \frac{2}{3} | 0.67 | n
decimal | 0.3333333 | \frac{1}{3} | y
decimal | \frac{1}{3} | 0.\overline{3} | y
decimal | \frac{1}{6} | 0.1\overline{6} | y
decimal | \frac{41}{333} | 0.\overline{123} | y
decimal | \frac{1}{7} | 0.142857 | y
decimal | \frac{1}{7} | 0.\overline{142857} | y
decimal | \sqrt{2} | 1.41421356 | y
decimal | \sqrt{2} | 1.414 | n
decimal | \sqrt{2} | 1.5 | n
decimal | \pi | 3.14159265 | y
decimal | \pi | 3.14 | n
decimal | \pi | \frac{22}{7} | n
decimal | 3.14 | \pi | n
decimal | 1.5 | 1.50000000001 | y
decimal | 2.74 | 2,74 | y
decimal | 1000.99 | 1,000.99 | y
decimal | 1000.99 | 1000.98 | n
decimal | 7.78 | \frac{70}{9} | n
decimal | 0.001 | 0.002 | n
decimal | 0.0000001 | 0.0000002 | n
decimal | 1000000.5 | 1000000.6 | n
decimal | 2.718281828 | e | y
decimal | e | 2.72 | n
fraction | \frac{1}{2} | 1/2 | y
fraction | \frac{1}{2} | \frac12 | y
fraction | \frac{1}{2} | \frac 1 2 | y
fraction | \frac{1}{2} | \frac{1}2 | y
fraction | \frac{1}{2} | \frac1{2} | y
fraction | \frac{1}{2} | \dfrac{1}{2} | y
fraction | \frac{1}{2} | \tfrac{1}{2} | y
fraction | \frac{1}{2} | \cfrac{1}{2} | y
fraction | \frac{1}{2} | \left(\frac{1}{2}\right) | y
fraction | \frac{1}{2} | ½ | y
fraction | \frac{1}{2} | 2/4 | y
fraction | \frac{1}{2} | \frac{2}{4} | y
fraction | \frac{1}{2} | 1 / 2 | y
fraction | \frac{1}{2} | 1÷2 | y
fraction | \frac{1}{2} | 2^{-1} | y
fraction | \frac{1}{2} | 2 | n
fraction | \frac{1}{2} | \frac{2}{1} | n
fraction | \frac{1}{2} | -\frac{1}{2} | n
fraction | -\frac{3}{4} | \frac{-3}{4} | y
fraction | -\frac{3}{4} | \frac{3}{-4} | y
fraction | -\frac{3}{4} | -3/4 | y
fraction | -\frac{3}{4} | -0.75 | y
fraction | -\frac{3}{4} | \frac{3}{4} | n
fraction | \frac{14}{3} | \frac{-14}{-3} | y
fraction | \frac{270}{7}\text{ degrees} | 270/7 | y
fraction | \frac{3}{56} | \frac{\frac{3}{8}}{7} | y
fraction | \frac{11}{7} | 1\frac{4}{7} | y
fraction | \frac{\frac{1}{2}}{3} | \frac{1}{6} | y
fraction | \frac{123}{456} | \frac{41}{152} | y
fraction | \frac{10}{9} | 10/9 | y
fraction | \frac{1001}{1000} | 1.001 | y
mixed | 2\frac{1}{2} | 2.5 | y
mixed | 2\frac{1}{2} | \frac{5}{2} | y
mixed | 2\frac{1}{2} | 2 1/2 | y
mixed | 2\frac{1}{2} | 2 \frac{1}{2} | y
mixed | 2\frac12 | 5/2 | y
mixed | 2\frac{1}{2} | 1 | n
mixed | -1\frac{3}{4} | -1.75 | y
mixed | -1\frac{3}{4} | -\frac{7}{4} | y
mixed | -1\frac{3}{4} | -\frac{1}{4} | n
mixed | 3\frac{2}{7} | \frac{23}{7} | y
mixed | 3\frac{2}{7} | \frac{6}{7} | n
mixed | 1 3/4 | 1.75 | y
percent | 50\% | 50% | y
percent | 50\% | 50 | y
percent | 50\% | 0.5 | y
percent | 50\% | \frac{1}{2} | y
percent | 50\% | 50 percent | y
percent | 50\% | 50 \% | y
percent | 50\% | 50 \text{ percent} | y
percent | 50\% | 51% | n
percent | 50\% | 5 | n
percent | 50\% | 0.05 | n
percent | 0.5 | 50\% | y
percent | 50 | 50\% | y
percent | 12.5\% | 0.125 | y
percent | 12.5\% | 12.5 | y
percent | 33\frac{1}{3}\% | \frac{1}{3} | y
percent | 33\frac{1}{3}\% | 33.333333\% | y
percent | 100\% | 1 | y
percent | 28\% | $\boxed{28}$ percent | y
percent | 28\% | \boxed{28 percent} | y
percent | 20\% | 80\% | n
units | 10 cm | 10 | y
units | 10 | 10 cm | y
units | 10\text{ cm} | 10 \mathrm{~cm} | y
units | 10\text{ cm} | 10cm | y
units | 10\text{ cm} | 10 centimeters | y
units | 10\text{ cm} | 0.1\text{ m} | y
units | 10\text{ cm} | 10\text{ m} | n
units | 10\text{ cm} | 10\text{ kg} | n
units | 15\mbox{ cm}^2 | 15 | y
units | 15\mbox{ cm}^2 | 15\text{ square centimeters} | y
units | 15\mbox{ cm}^2 | 15 cm² | y
units | 15\text{ square units} | 15 | y
units | 15\text{ units}^2 | 15 | y
units | 5\text{ km} | 5000\text{ m} | y
units | 5\text{ km} | 5000 | n
units | 90\text{ minutes} | 1.5\text{ hours} | y
units | 2\text{ hours }30\text{ minutes} | 150\text{ minutes} | y
units | 2\text{ hours }30\text{ minutes} | 2.5\text{ hours} | y
units | 5\text{ feet }3\text{ inches} | 63\text{ inches} | y
units | 60\text{ km/h} | 60 | y
units | 60\text{ km/h} | 60\text{ kilometers per hour} | y
units | 60\text{ mph} | 60\text{ miles per hour} | y
units | 9.8\text{ m/s}^2 | 9.8 | y
units | 9.8\text{ m/s}^2 | 9.8\ \mathrm{m/s^2} | y
units | 3\text{ kg} | 3000\text{ g} | y
units | 2\text{ L} | 2000\text{ mL} | y
units | 12\text{ apples} | 12 | y
units | 12 apples | 12 | y
units | 12 | 12 apples | y
units | 12 apples | 13 apples | n
units | 125\text{ miles} | $125\textnormal{ miles}$ | y
units | 7\text{ students} | 7\text{ people} | y
units | 0.06 \text{ yuan} | \boxed{0.06 \text{ yuan}} | y
units | 1000.99 | 1,000.99m² | y
units | 20\text{ dollars} | 20\text{ apples} | y
units | 3 \text{ inches} | 3 \text{ in} | y
units | 5^{\text{th}} | 5 | y
units | 42nd | 42 | y
money | \$5 | 5 | y
money | \$5 | $5 | y
money | \$5 | 5 dollars | y
money | \$5 | \$5.00 | y
money | \$18.90 | 18.90 | y
money | \$18.90 | 18.9 | y
money | \$18.90 | \$18.95 | n
money | \$1,234 | 1234 | y
money | \$5 | 500 cents | y
money | \$5 | 5 cents | n
money | 5 | $5.00 | y
money | 5 | €5 | y
money | 32 | \$32 | y
money | 1000.99 | 1,000.99€ | y
money | \$10{,}000 | \$10,000.00 | y
set | \{1,2,3\} | \{3,2,1\} | y
set | \{1,2,3\} | 1,2,3 | y
set | \{1,2,3\} | 1, 2, and 3 | y
set | \{1,2,3\} | 3,1,2 | y
set | \{1,2,3\} | \{1,2\} | n
set | \{1,2,3\} | \{1,2,4\} | n
set | \{1,2,3\} | \{1,2,3,4\} | n
set | 1,2,3 | {1,2,3} | y
set | 1,-2 | -2,1 | y
set | -2,1 | \boxed{-2}, \boxed{1} | y
set | 1,-2 | 1,2 | n
set | \{0.5, 1\} | \{1, \frac{1}{2}\} | y
set | \{1\pm\sqrt{5},-2\} | -2, 1+\sqrt5, 1-\sqrt5 | y
set | \{1\pm\sqrt{5},-2\} | -2, 1+\sqrt5, 1+\sqrt5 | n
set | 6 \text{ and } 8 | 6,8 | y
set | 6 \text{ or } 8 | 8, 6 | y
set | 12 \text{ and } 13 | 13 \text{ and } 12 | y
set | 19, 46, and 82 | 19, 46, \text{ and } 82 | y
set | 19, 46, and 82 | 21, 36, and 82 | n
set | -12;-11;-10 | \{-12,-11,-10\} | y
set | \{5\} | 5 | y
set | 5 | \{5\} | y
set | 1,1,2 | 1,2 | y
set | \emptyset | \varnothing | y
set | \emptyset | \{\} | y
set | \emptyset | no solution | y
set | \emptyset | \{0\} | n
set | \emptyset | 0 | n
set | \text{no solution} | \text{No solutions} | y
set | \text{no real solutions} | \emptyset | y
set | \{(1,2),(3,4)\} | (3,4),(1,2) | y
set | (1,2),(3,4) | \{(3,4),(1,2)\} | y
set | (1,2),(3,4) | (2,1),(3,4) | n
set | (1,2),(3,4) | (1,2) | n
set | (0;0;0),(0;-2;0) | (0,-2,0),(0,0,0) | y
set | \{x,y\} | \{y,x\} | y
set | \{a,b\} | \{a,c\} | n
set | \mathbb{R} | (-\infty,\infty) | y
set | \mathbb{R} | \text{all real numbers} | y
set | \mathbb{Z} | \mathbb{Z} | y
set | \mathbb{Z} | \mathbb{R} | n
tuple | (1,2) | (1, 2) | y
tuple | (1,2) | \left(1,2\right) | y
tuple | (1,2) | (2,1) | n
tuple | (2,1) | (1,2) | n
tuple | (3,1) | {1,3} | n
tuple | (1,3) | {1,3} | y
tuple | (1,3) | 1,3 | y
tuple | (1,2,3) | (1,3,2) | n
tuple | (1,2,3) | (1,2) | n
tuple | (6,31,-1) | (6, 31, -1) | y
tuple | (3,\frac{\pi}{2}) | \left( 3, \frac{\pi}{2} \right) | y
tuple | (1,\frac{9}{2}) | (1,4.5) | y
tuple | (p,q)=(3,2) | (3,2) | y
tuple | (3,2) | (p,q)=(3,2) | y
tuple | (3,2) | (x,y)=(2,3) | n
tuple | (7,6) | x=7, y=6 | y
tuple | (7,6) | x=6, y=7 | n
tuple | (5, 8), (8, 5) | (x, y) = (5, 8) \quad \text{and} \quad (8, 5) | y
tuple | \langle 1,2,3\rangle | (1,2,3) | y
tuple | (-1,0,1) | (-1, 0, 1, 2) | n
tuple | (\sqrt{2}, 1) | (2^{1/2}, 1) | y
tuple | (a,b) | (a, b) | y
tuple | (a,b) | (b, a) | n
tuple | (3, 7) | (3, 7] | n
tuple | (x, y, z) = (1, 2, 3) | x = 1, y = 2, z = 3 | y
tuple | (2,12) | (2,13) | n
interval | [0,1) | [0, 1) | y
interval | [0,1) | (0,1) | n
interval | [0,1) | [0,1] | n
interval | [0,9) | [0,1) | n
interval | (0,9) | [0,9) | n
interval | [-4,0] | \left[-4,0\right] | y
interval | [-4,0] | x \in [-4,0] | y
interval | x \in [-2,7] | [-2,7] | y
interval | [-2,7] | -2 \le x \le 7 | y
interval | x \in [-2,7] | -2 \le x \le 7 | y
interval | -2 \le x \le 7 | [-2,7] | y
interval | -2 \le x \le 7 | x \in [-2,7] | y
interval | -2 \le x \le 7 | (-2,7) | n
interval | -2 < x < 7 | (-2,7) | y
interval | -793 < a < 10 | (-793, 10) | y
interval | (1, +\infty) | (1,\infty) | y
interval | (1, \infty) | [1,\infty) | n
interval | (-\infty, 5] | (-\infty,5] | y
interval | (-\infty, 5] | x \in (-\infty, 5] | y
interval | (\frac{3}{5},\frac{8}{3}] | (0.6, \frac{8}{3}] | y
interval | x > 3 | (3,\infty) | y
interval | x \ge 3 | [3,\infty) | y
interval | x \ge 3 | (3,\infty) | n
interval | x < 3 | (-\infty,3) | y
interval | x \neq 3 | (-\infty,3)\cup(3,\infty) | y
interval | 0<f(x)<1 | (0,1) | y
interval | 1\leq|z|\leq \frac{3}{2} | z \in \left[-\frac{3}{2}, -1\right] \cup \left[1, \frac{3}{2}\right] | y
interval | (0, 1) \cup (1, 2) | (0,2) \setminus \{1\} | y
interval | (-\infty,0)\cup(0,\infty) | \mathbb{R}\setminus\{0\} | y
interval | (-\infty,2)\cup(3,\infty) | (3,\infty)\cup(-\infty,2) | y
interval | (-\infty,2)\cup(3,\infty) | (-\infty,2]\cup[3,\infty) | n
interval | (-\infty,2)\cup(3,\infty) | (-\infty,3)\cup(2,\infty) | n
interval | (-\infty,2)\cup(3,\infty) | (2,3) | n
interval | [1,3]\cup[2,5] | [1,5] | y
interval | x<2 \text{ or } x>3 | (-\infty,2)\cup(3,\infty) | y
interval | [-1, -\frac{1}{2}) \cup (-\frac{1}{2}, 0) \cup (0, 1) \cup (1, \infty) | [-1, -\tfrac12) \cup (-\tfrac12, 0) \cup (0, 1) \cup (1, \infty) | y
interval | \{-1\} \cup [0,7) | [0,7) \cup \{-1\} | y
interval | \{1,3\} \cup \{2,4\} | \{1,2,3,4\} | y
interval | [2,12) \cup (12,102) | x \in [2,12) \cup (12,102) | y
interval | [-\sqrt{3}, \sqrt{3}] | [-3^{1/2}, \sqrt3] | y
interval | (1,2) | \{x \mid 1 < x < 2\} | y
matrix | \begin{pmatrix}1&2\\3&4\end{pmatrix} | \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} | y
matrix | \begin{pmatrix}1&2\\3&4\end{pmatrix} | \begin{bmatrix}1&2\\3&4\end{bmatrix} | y
matrix | \begin{pmatrix}1&2\\3&4\end{pmatrix} | \begin{pmatrix}1&2\\3&5\end{pmatrix} | n
matrix | \begin{pmatrix}1&2\\3&4\end{pmatrix} | \begin{pmatrix}1&3\\2&4\end{pmatrix} | n
matrix | \begin{pmatrix}1&2\\3&4\end{pmatrix} | \left[\begin{array}{cc}1 & 2 \\3 & 4\end{array}\right] | y
matrix | \begin{pmatrix}0.5\\1\end{pmatrix} | \begin{pmatrix}\frac12\\1\end{pmatrix} | y
matrix | \begin{pmatrix}6&8\\10&12\end{pmatrix} | \begin{pmatrix}1&2\\3&4\end{pmatrix}+\begin{pmatrix}5&6\\7&8\end{pmatrix} | y
matrix | \begin{pmatrix}2&4\\6&8\end{pmatrix} | 2\begin{pmatrix}1&2\\3&4\end{pmatrix} | y
matrix | \begin{pmatrix}1\\2\\3\end{pmatrix} | \begin{pmatrix}1&2&3\end{pmatrix}^T | y
matrix | \begin{pmatrix}1\\2\\3\end{pmatrix} | (1,2,3) | y
matrix | \begin{pmatrix}1\\2\\3\end{pmatrix} | (1,3,2) | n
matrix | \begin{pmatrix}-\frac{7}{4}&-2\\4&\frac{1}{4}\end{pmatrix} | \begin{pmatrix}-1.75&-2\\4&0.25\end{pmatrix} | y
matrix | \begin{pmatrix}a&b\\c&d\end{pmatrix} | \begin{pmatrix}a&b\\c&-d\end{pmatrix} | n
matrix | \begin{pmatrix}1&2\end{pmatrix} | \begin{pmatrix}1&2\\3&4\end{pmatrix} | n
plus-minus | \pm 2 | 2,-2 | y
plus-minus | \pm 2 | -2,2 | y
plus-minus | \pm 2 | 2 | n
plus-minus | \pm 2 | ±2 | y
plus-minus | \pm 2 | \{-2,2\} | y
plus-minus | 1 \pm \sqrt{19} | 1+\sqrt{19}, 1-\sqrt{19} | y
plus-minus | 1 \pm \sqrt{19} | 1 \pm \sqrt{17} | n
plus-minus | 3 \pm 2 \sqrt{2} | 3 \pm \sqrt{8} | y
plus-minus | \frac{-1\pm\sqrt{13}}{4} | \frac{-1+\sqrt{13}}{4}, \frac{-1-\sqrt{13}}{4} | y
plus-minus | x = \pm 3 | x = 3 \text{ or } x = -3 | y
plus-minus | x = \pm 3 | \pm 3 | y
plus-minus | x = \frac{1}{2}, x = \frac{-1 \pm \sqrt{13}}{4} | x = \frac{-1 \pm \sqrt{13}}{4}, x=0.5 | y
equation | x=5 | 5 | y
equation | 5 | x=5 | y
equation | x=5 | y=5 | n
equation | x=5 | x=6 | n
equation | x = 11 | x = 5+5+1 = 7 =11 | y
equation | 11 | x\approx 11 | y
equation | x=5 | x = 10/2 | y
equation | |AB|=1 | 1 | y
equation | f(x)=2x+1 | 2x+1 | y
equation | 2x+1 | f(x)=2x+1 | y
equation | f(x)=2x+1 | f(x)=2x-1 | n
equation | y=2x+1 | y = 1+2x | y
equation | y=2x+1 | 2x-y+1=0 | y
equation | y=2x+1 | 2x+y+1=0 | n
equation | 2x+4y-3=0 | y=-\frac{1}{2}x+\frac{3}{4} | y
equation | x-2y+z-1=0 | x-2y+z=1 | y
equation | x-2y+z-1=0 | -2x+4y-2z+2=0 | y
equation | x-2y+z-1=0 | x-2y+z+1=0 | n
equation | x^2+y^2=25 | y^2+x^2=5^2 | y
equation | x^2+y^2=25 | x^2+y^2=5 | n
equation | x^2/4 + y^2/3 = 1 | x^2/16 + y^2/12 = 1/4 | y
equation | \frac{x^2}{4}+\frac{y^2}{3}=1 | 3x^2+4y^2=12 | y
equation | 2x+z=1 | 1 | n
equation | 7 = 11a+c | 11a+c | n
equation | a^2+b=0 | 0 | n
equation | k=45, n=2 | n=2, k=45 | y
equation | k=45, n=2 | k=2, n=45 | n
equation | AB=4,CD=5 | 4,5 | y
equation | x=1,y=2 | (1,2) | y
equation | x=1,y=2 | (2,1) | n
equation | x=3 \text{ or } x=-1 | x=-1,3 | y
equation | n=1, 2, 3 | n=1, 2, 3 | y
equation | n=2, 3, 4 | n=1, 2, 3 | n
equation | p=5,q=2;p=7,q=2 | (5,2),(7,2) | y
equation | D = (0, 1) | D = (0, 1.5) | n
equation | \frac{NO}{BO}=\frac{1}{\sqrt{6}} | \frac{1}{\sqrt{6}} | y
equation | S_{MBCN}:S=7:32 | 7:32 | y
equation | a_3 = 2, a_{37} = 19 | a_{37} = 19, a_3 = 2 | y
equation | P(A) = \frac{1}{2} | 0.5 | y
equation | x_1 = 3 | 3 | y
equation | \angle ABC = 30^\circ | 30 | y
inequality | x > 5 | 5 < x | y
inequality | x > 5 | x < 5 | n
inequality | x > 5 | x \ge 5 | n
inequality | x \geq 5 | x >= 5 | y
inequality | x \leq 5 | 5 \geq x | y
inequality | x < 1 | -x > -1 | y
inequality | x < 1 | 2x < 2 | y
inequality | x <= 1 | -x >= -1 | y
inequality | x \neq 3 | x != 3 | y
inequality | x \ne 3 | x = 3 | n
inequality | 1 < x < 2 | 2 > x > 1 | y
inequality | 1 < x < 2 | 1 < x \le 2 | n
inequality | 1 < x < 2 | x > 1 \text{ and } x < 2 | y
inequality | x > 5 | 5 | n
inequality | 5 | x > 5 | n
inequality | f(2) < f(1) < f(4) | f(2) < f(1) < f(4) | y
inequality | f(2) < f(1) < f(4) | f(4) < f(1) < f(2) | n
inequality | k \ge 2 | k \geq 2 | y
inequality | a < b | b > a | y
inequality | x+y \le 3 | 3 \ge x + y | y
choice | A | A | y
choice | A | (A) | y
choice | A | \text{A} | y
choice | A | \text{(A)} | y
choice | A | A. | y
choice | A | A) | y
choice | A | a | y
choice | A | (a) | y
choice | A | B | n
choice | A | (B) | n
choice | A | \textbf{(A)} | y
choice | A | \boxed{A} | y
choice | A | \boxed{\text{(A)}} | y
choice | A | option A | y
choice | A | Option (A) | y
choice | B | (B) 42 | y
choice | B | B) 42 | y
choice | B | B. 42 | y
choice | B | B: 42 | y
choice | B | (C) 42 | n
choice | B | C. 42 | n
choice | \textbf{(B)}\ 42 | B | y
choice | \textbf{(B)}\ 42 | 42 | y
choice | \textbf{(B)}\ 42 | 43 | n
choice | \textbf{(B)}\ 42 | C | n
choice | 42 | \textbf{(B)}\ 42 | y
choice | D | The answer is (D). | y
choice | D | The answer is D | y
choice | D | The correct answer is **D**. | y
choice | D | Answer: D | y
choice | D | The answer is (A). | n
choice | E | \mathrm{E} | y
choice | \text{E} | E | y
choice | d | \text{E} | n
choice | A, C | C, A | y
choice | AC | A, C | y
choice | A, C | A, B | n
choice | \text{(A) and (C)} | A, C | y
degrees | 90^\circ | 90 | y
degrees | 90^\circ | 90° | y
degrees | 90^\circ | 90^{\circ} | y
degrees | 90^\circ | 90 degrees | y
degrees | 90^\circ | 90\text{ degrees} | y
degrees | 90^\circ | \frac{\pi}{2} | y
degrees | \frac{\pi}{2} | 90^\circ | y
degrees | 90^\circ | 91^\circ | n
degrees | 90 | 90^\circ | y
degrees | 20^\circ C | 20 | y
degrees | 45^\circ | \frac{\pi}{3} | n
scientific | 1.5\times10^3 | 1500 | y
scientific | 1.5\times10^3 | 1.5e3 | y
scientific | 1.5\times10^3 | 1.5E3 | y
scientific | 1.5\times10^3 | 1.5 \cdot 10^{3} | y
scientific | 1.5\times10^3 | 1.5*10^3 | y
scientific | 1.5\times10^3 | 15\times10^2 | y
scientific | 1.5\times10^3 | 1.5\times10^2 | n
scientific | 1.5\times10^{-3} | 0.0015 | y
scientific | 3 \times 10^8 | 300000000 | y
scientific | 3 \times 10^8 | 300,000,000 | y
scientific | 3 \times 10^8\text{ m/s} | 3e8 | y
roots | \sqrt{3} | \sqrt3 | y
roots | \sqrt{3} | \sqrt {3} | y
roots | \sqrt{3} | sqrt(3) | y
roots | \sqrt{3} | √3 | y
roots | \sqrt{3} | 3^{1/2} | y
roots | \sqrt{3} | 3^{0.5} | y
roots | \sqrt{3} | 3^\frac{1}{2} | y
roots | \sqrt{3} | \sqrt{5} | n
roots | \sqrt{3} | 3 | n
roots | 3\sqrt{13} | \sqrt{117} | y
roots | 3\sqrt{13} | \sqrt{116} | n
roots | 4 | 4\sqrt{2} | n
roots | 1\sqrt{19} | 1 | n
roots | \sqrt{2}+\sqrt{5} | \sqrt 2+\sqrt 5 | y
roots | \sqrt{2}+\sqrt{3} | \sqrt{5+2\sqrt{6}} | y
roots | \frac{\sqrt{2}}{2} | \frac{1}{\sqrt{2}} | y
roots | \frac{1}{\sqrt{2}+1} | \sqrt{2}-1 | y
roots | \frac{1+\sqrt{5}}{2} | 2 | n
roots | \frac{\sqrt{\sqrt{11}+\sqrt{194}}}{15+2\sqrt{33}} | \frac{\sqrt{\sqrt{11}+\sqrt{194}}}{2\sqrt{33}+15} | y
roots | \sqrt[3]{8} | 2 | y
roots | \sqrt[3]{-8} | -2 | y
roots | \sqrt[3]{2} | 2^{1/3} | y
roots | \sqrt[3]{2} | \sqrt{2} | n
roots | 2\sqrt{3} | 2*sqrt(3) | y
roots | 2\sqrt{3} | 2√3 | y
roots | \sqrt{\frac{1}{2}} | \frac{\sqrt{2}}{2} | y
roots | 10\sqrt{2} | 14.1421356 | y
roots | 10\sqrt{2} | 14.14 | n
pi | 2\pi | 2π | y
pi | 2\pi | 2pi | y
pi | 2\pi | 2*pi | y
pi | 2\pi | \pi \cdot 2 | y
pi | 2\pi | 6.28318530718 | y
pi | 2\pi | 6.28 | n
pi | 2\pi | \pi | n
pi | \frac{9}{4}\pi | \frac94\pi | y
pi | \frac{9}{4}\pi | \frac{9\pi}{4} | y
pi | \frac{9}{4}\pi | 9π/4 | y
pi | \frac{9}{4}\pi | 2.25\pi | y
pi | \frac{\pi}{6} | π/6 | y
pi | \frac{\pi}{6} | \frac{1}{6}\pi | y
pi | \frac{\pi}{6} | \pi/3 | n
pi | 25\pi \text{ cm}^2 | 25\pi | y
pi | 36\pi - 72 | 36(\pi-2) | y
exponential | e^2 | e\cdot e | y
exponential | e^2 | \exp(2) | y
exponential | 1-\frac{1}{e} | 1-e^{-1} | y
exponential | 1-\frac{1}{e} | 1+\frac{1}{e} | n
exponential | \frac{e-1}{e} | 1-\frac{1}{\mathrm{e}} | y
exponential | 2^{n+1} | 2\cdot 2^n | y
exponential | 2^{n+1} | 2^n+1 | n
exponential | e^{x+y} | e^x e^y | y
log | \ln 2 | \log_e 2 | y
log | \log_2 8 | 3 | y
log | \log_{2}{8} | 3 | y
log | \ln 4 | 2\ln 2 | y
log | \ln 6 | \ln 2 + \ln 3 | y
log | \ln 6 | \ln 5 | n
log | \log_3 5 | \frac{\log 5}{\log 3} | y
log | \frac{\ln 3}{\ln 2} | \log_2 3 | y
log | \log_{10} 100 | 2 | y
log | \lg 100 | 2 | y
trig | \sin 30^\circ | \frac12 | y
trig | \sin\frac{\pi}{6} | 0.5 | y
trig | \cos 60^\circ | \frac{1}{2} | y
trig | \tan\frac{\pi}{4} | 1 | y
trig | \frac{\sqrt{3}}{2} | \cos 30^\circ | y
trig | \frac{\sqrt{3}}{2} | \sin 30^\circ | n
trig | \sin 2x | 2\sin x\cos x | y
trig | \tan^2(y)+1 | \sec^2(y) | y
trig | 2 \sin b \cos a | \sin (a + b) - \sin (a - b) | y
trig | \cos 2x | 1-2\sin^2 x | y
trig | \cos 2x | 1-\sin^2 x | n
trig | \arctan 1 | \frac{\pi}{4} | y
trig | \tan^{-1}(2) | \arctan 2 | y
trig | \sin x | \cos x | n
trig | \cos(\frac{\pi}{2}-x) | \sin x | y
algebra | x^2+2x+1 | (x+1)^2 | y
algebra | x^2+2x+1 | 1+2x+x^2 | y
algebra | x^2+2x+1 | (x+1)(x+1) | y
algebra | x^2+2x+1 | x^2+2x | n
algebra | x^2-1 | (x-1)(x+1) | y
algebra | x^2-1 | x^2+1 | n
algebra | 2x+3 | 3+2x | y
algebra | 2x+3 | 2y+3 | n
algebra | 2x+3 | 2*x+3 | y
algebra | \frac{x+2}{7} | \frac{x}{7}+\frac{2}{7} | y
algebra | \frac{1}{x}+\frac{1}{y} | \frac{x+y}{xy} | y
algebra | \frac{\pi r}{h+r} | \frac{\pi r}{r+h} | y
algebra | 2-2p | 2(1-p) | y
algebra | ab | ba | y
algebra | ab | a\cdot b | y
algebra | ab | a+b | n
algebra | (a+5)(b+2) | ab+2a+5b+10 | y
algebra | (a+5)(b+2) | (+5)(b+2) | n
algebra | x+2n+1 | x+1 | n
algebra | \frac{n(n+1)}{2} | \frac{n^2+n}{2} | y
algebra | \frac{n(n+1)}{2} | \binom{n+1}{2} | y
algebra | \frac{n(n+1)}{2} | \frac{n(n-1)}{2} | n
algebra | \frac{n!}{(n-2)!} | n(n-1) | y
algebra | x^{-1} | \frac{1}{x} | y
algebra | \sqrt{x^2+1} | (x^2+1)^{1/2} | y
algebra | \frac{1}{3\sqrt[3]{x}^2} | \frac{1}{3x^{2/3}} | y
algebra | x^3y^2 | x*x*x*y*y | y
algebra | x^3y^2 | x^2y^3 | n
algebra | -x-y | -(x+y) | y
algebra | -x-y | -(x-y) | n
algebra | x**2 | x^2 | y
algebra | 1/2x | \frac{x}{2} | y
algebra | \frac{x}{2} | 1/2 x | y
algebra | a_1+a_2 | a_2+a_1 | y
algebra | a_1+a_2 | a_1+a_3 | n
algebra | a_n = 2n-1 | 2n-1 | y
algebra | 2N | 2n | y
algebra | |x-2| | |2-x| | y
algebra | |x-2| | x-2 | n
algebra | x^2+3x+2 | \boxed{(x+2)(x+1)} | y
algebra | \frac{a}{b} | a/b | y
algebra | \frac{a}{b} | \frac{b}{a} | n
algebra | \lfloor 3.7 \rfloor | 3 | y
algebra | \lceil 3.2 \rceil | 4 | y
complex | 3+4i | 4i+3 | y
complex | 3+4i | 3-4i | n
complex | 2i | (1+i)^2 | y
complex | -1 | i^2 | y
complex | \frac{1}{i} | -i | y
complex | \sqrt{-4} | 2i | y
complex | 1+i\sqrt{3} | 1+\sqrt{3}i | y
complex | e^{i\pi} | -1 | y
base | 204_5 | 204_5 | y
base | 204_5 | 204_{5} | y
base | 204_5 | 204 | y
base | 204_5 | 54_{10} | y
base | 204_5 | 54 | u
base | 204_5 | 203_5 | n
base | 1112112_3 | 1112112_{3} | y
base | 1112112_3 | 1100111_3 | n
base | 204_5 | 204_{\text{five}} | y
base | 204_5 | 204_6 | n
ratio | 7:32 | 7:32 | y
ratio | 7:32 | \frac{7}{32} | y
ratio | 7:32 | 14:64 | y
ratio | 7:32 | 32:7 | n
ratio | 11:21 | 11 : 21 | y
ratio | 1:2:3 | 2:4:6 | y
ratio | 1:2:3 | 1:3:2 | n
time | 12:00 | 12:00 | y
time | 12:00 | 1:00 | n
time | 3:30 | 3:30 \text{ PM} | y
time | 3:30 \text{ PM} | 15:30 | y
time | 3:30 \text{ PM} | 3:30 \text{ AM} | n
time | 10:15 | 10:25 | n
words | even | Even | y
words | \text{even} | even | y
words | \text{even} | odd | n
words | \text{odd} | $odd$ | y
words | \text{Even} | Even | y
words | \text{Evelyn} | Evelyn | y
words | \text{Evelyn} | \text{Briana} | n
words | Evelyn | 5 | n
words | 5 | Evelyn | u
words | yes | Yes | y
words | yes | no | n
words | Yes | \text{Yes} | y
words | \text{does not exist} | DNE | y
words | \text{infinitely many} | \text{infinitely many solutions} | y
words | \text{ellipse} | \text{an ellipse} | y
words | \text{ellipse} | \text{parabola} | n
words | \text{no solution} | 5 | n
words | 5 | \text{no solution} | n
words | \text{Saturday} | Saturday | y
words | \text{neither} | \text{both} | n
words | \text{The midpoints form a regular hexagon} | \text{The midpoints form a regular hexagon} | y
infinity | \infty | +\infty | y
infinity | \infty | -\infty | n
infinity | -\infty | -∞ | y
infinity | \infty | infinity | y
infinity | \infty | 5 | n
latex | \frac{1}{2} | \displaystyle\frac{1}{2} | y
latex | 5 | \left(5\right) | y
latex | 5 | \mathbf{5} | y
latex | 5 | \text{5} | y
latex | 5 | $5$ | y
latex | 5 | \(5\) | y
latex | 5 | \[5\] | y
latex | 5 | $$5$$ | y
latex | 5 | **5** | y
latex | 5 | {5} | y
latex | 5 | \ 5\ | y
latex | 5 | 5\, | y
latex | 5 | \boxed{5} | y
latex | 5 | \fbox{5} | y
latex | 5 | \boxed{\boxed{5}} | y
latex | x+1 | x\,+\,1 | y
latex | x+1 | {x}+{1} | y
latex | x^{10} | x^10 | y
latex | x^{2} | x^2 | y
latex | x_{1} | x_1 | y
latex | \alpha | α | y
latex | \alpha | \beta | n
latex | 2\cdot 3 | 6 | y
latex | 3 \times 4 | 12 | y
latex | \left\{1,2\right\} | \{1,2\} | y
latex | \left\lfloor\frac{7}{2}\right\rfloor | 3 | y
latex | \mathrm{e} | e | y
latex | \\frac{1}{2} | \frac{1}{2} | y
modular | 3 \pmod 7 | 3 | y
modular | x \equiv 3 \pmod{7} | 3 | u
modular | 3 \pmod 7 | 4 | n
extraction | 5 | The answer is 5. | y
extraction | 5 | The answer is $5$. | y
extraction | 5 | Final Answer: 5 | y
extraction | 5 | **Answer:** 5 | y
extraction | 5 | So the final answer is \boxed{5}. | y
extraction | 5 | First \boxed{3}. Then \boxed{5} | y
extraction | 5 | First \boxed{5}. Then \boxed{3} | n
extraction | 5 | <think>\boxed{3}</think> \boxed{5} | y
extraction | 5 | <think>maybe \boxed{5}</think> \boxed{3} | n
extraction | 5 | I add 2 and 3. #### 5 | y
extraction | 2+3=5 #### 5 | 5 | y
extraction | 2+3=5 #### 5 | 2 | n
extraction | \frac{1}{2} | Thus the probability is \boxed{\frac{1}{2}}. | y
extraction | \frac{1}{2} | \boxed{\frac{1}{2} | y
extraction | 34 | Final Answer: The largest $n$ is 34. | y
extraction | 125 | The distance is $\boxed{125\text{ miles}}.$ | y
extraction | 1,2 | \boxed{1} and \boxed{2} | y
extraction | 1,2,3 | \boxed{1},\boxed{2},\boxed{3} | y
extraction | 3 | She has 5 apples, eats 2, and so 3 are left | y
extraction | 18 | Janet makes $18 per day. | y
extraction | 18 | \boxed 18 | y
extraction | 2 | The answer is $x = 2$ | y
extraction | 70000 | The answer is $70,000. | y
extraction | 5 | | u
extraction | | 5 | u
more | \frac{\sqrt{3}}{3} | \frac{1}{\sqrt{3}} | y
more | \dfrac{7}{12} | 7/12 | y
more | \frac{3\pi}{4} | 135^\circ | y
more | -\frac{1}{2} | \frac{-1}{2} | y
more | 6+9i | 9i+6 | y
more | 6 - 5i | 6-5i | y
more | \left( \frac{3}{2}, -13 \right) | (1.5,-13) | y
more | \frac{21}{25} | 0.84 | y
more | p - q | -q+p | y
more | x \in [-2,7] | [-2, 7] | y
more | (-\infty, -5)\cup(5,\infty) | x<-5 \text{ or } x>5 | y
more | x<-5 \text{ or } x>5 | (-\infty,-5)\cup(5,\infty) | y
more | \text{Navin} | Navin | y
more | 11\sqrt2 | 11\sqrt{2} | y
more | \frac{1}{16}, \frac{1}{4} | \frac14,\frac1{16} | y
more | 10\% | 0.1 | y
more | \$1.25 | 1.25 | y
more | 1.25 | \$1.25 | y
more | 3R^2 | 3r^2 | y
more | 2k+2 | 2(k+1) | y
more | y = 2x + 3 | y=3+2x | y
more | y = 2x + 3 | 2x+3 | y
more | x=2 \text{ and } y=3 | (2,3) | y
more | (2,3) | x=2 \text{ and } y=3 | y
more | \frac{5}{3} | \frac{5}{3}\text{ cm} | y
more | 8\text{ cubic feet} | 8 | y
more | 8 | 8\text{ ft}^3 | y
more | 8 | 8 ft^3 | y
more | 120^\circ | 120 degrees | y
more | 1:3 | 1/3 | y
more | 1{,}250 | 1250 | y
more | 60 | 60\% | y
more | 0.6 | 60\% | y
more | 60\% | \frac35 | y
more | \frac{3}{5} | 60\% | y
more | \frac35 | 0.6 | y
more | 60\% | 0.06 | n
more | (0,0),(1,1) | (1,1),(0,0) | y
more | (0,0) | (1,1),(0,0) | n
more | \{(0,0),(1,1)\} | (0,0) \text{ and } (1,1) | y
more | 1 < x \le 3 | (1,3] | y
more | 1 < x \le 3 | x \in (1,3] | y
more | 1 < x \le 3 | (1,3) | n
more | \frac{1}{x+1} | (x+1)^{-1} | y
more | x\sqrt{x} | x^{3/2} | y
more | x\sqrt{x} | x^{1.5} | y
more | \sqrt{x}\sqrt{y} | \sqrt{xy} | y
more | \log(xy) | \log x+\log y | y
more | \ln(x^2) | 2\ln x | y
more | e^{2\ln x} | x^2 | y
more | \frac{\sin x}{\cos x} | \tan x | y
more | \sin(2\theta) | 2\sin\theta\cos\theta | y
more | \sin\theta | \sin\alpha | n
more | \sec x | \frac{1}{\cos x} | y
more | 4\pi r^2 | 4 \pi r^2 | y
more | 4\pi r^2 | 4\pi r | n
more | \frac{4}{3}\pi r^3 | \frac{4\pi r^3}{3} | y
more | 16! | 20922789888000 | y
more | \binom{n}{2} | \frac{n(n-1)}{2} | y
more | n(n-1) | n^2-n | y
more | 2^n-1 | 2^n - 1 | y
more | 2^n-1 | 2^{n-1} | n
more | 2^{n-1} | \frac{2^n}{2} | y
more | (-1)^n | (-1)^{n+2} | y
more | (-1)^n | (-1)^{n+1} | n
more | \frac{(-1)^n}{n} | \frac{(-1)^{n}}{n} | y
more | n! | n(n-1)! | y
more | \frac{2n(2n+1)}{3} | \frac{4n^2+2n}{3} | y
more | a^2+b^2 | (a+b)^2 | n
more | a^2-b^2 | (a+b)(a-b) | y
more | x^3-1 | (x-1)(x^2+x+1) | y
more | \frac{x^2-1}{x-1} | x+1 | y
more | \max(2,5) | 5 | y
more | \gcd(12,18) | 6 | y
more | 17\text{ min} | 17\text{ minutes} | y
more | 1\text{ hour} | 60\text{ minutes} | y
more | \frac{1}{2}\text{ hour} | 30\text{ minutes} | y
more | 5\text{ m} | 500\text{ cm} | y
more | 10\text{ mph} | 10\text{ km/h} | n
more | 100\text{ cm}^2 | 0.01\text{ m}^2 | y
more | \text{A} | The correct option is A | y
more | C | **C** | y
more | C | (C) because 5 > 3 | y
more | B | \boxed{B: 12} | y
more | B | The answer is B. 12 | y
more | (B) | B | y
more | \text{(E)} | \boxed{\textbf{(E) }} | y
more | E | \boxed{\textbf{(E) } 42} | y
more | \text{True} | True | y
more | \text{False} | True | n
more | 7.0 | 7 | y
more | 7 | 7.00 | y
more | 7 | 7.01 | n
more | 0.1+0.2 | 0.3 | y
more | 100 | 10^2 | y
more | 1e3 | 1000 | y
more | 10^{-3} | 0.001 | y
more | 10^{-3} | 1/1000 | y
more | 6.022\times 10^{23} | 6.022e23 | y
more | 6.022\times 10^{23} | 6.023e23 | n
more | -\infty | -\infty | y
more | [2, \infty) | x \geq 2 | y
more | x \geq 2 | [2, \infty) | y
more | x \geq 2 | [2, +\infty) | y
more | x \geq 2 | 2 \le x | y
more | (2, \infty) | (2, +\infty) | y
more | \left(-\infty,\frac{1}{2}\right] | (-\infty,0.5] | y
more | \{x \mid x > 2\} | (2,\infty) | y
more | \{ x \in \mathbb{R} : x \neq 0 \} | (-\infty,0)\cup(0,\infty) | y
more | x \ne 0 | \mathbb{R} \setminus \{0\} | y
more | \text{all real numbers except } 0 | \mathbb{R} \setminus \{0\} | u
more | 3, 5, 7 | 3,5,7 | y
more | 3, 5, 7 | (3,5,7) | y
more | 3, 5, 7 | [3,5,7] | y
more | 3, 5, 7 | 3 5 7 | u
more | 3, 5, 7 | 7, 5 | n
more | \begin{pmatrix} 2 \\ -1 \end{pmatrix} | \begin{bmatrix} 2 \\ -1 \end{bmatrix} | y
more | \begin{pmatrix} 2 \\ -1 \end{pmatrix} | \langle 2, -1 \rangle | y
more | \begin{vmatrix}1&2\\3&4\end{vmatrix} | -2 | y
more | \det\begin{pmatrix}1&2\\3&4\end{pmatrix} | -2 | y
more | \mathbf{i}+2\mathbf{j} | \mathbf{i} + 2 \mathbf{j} | y
more | \vec{a}+\vec{b} | \vec{b}+\vec{a} | y
more | \overline{AB} | AB | y
more | \triangle ABC | ABC | y
more | 0.\dot{3} | \frac13 | y
more | 1.2\overline{34} | \frac{611}{495} | y
more | \sqrt{-1} | i | y
more | x=-1\pm\sqrt{2} | -1+\sqrt{2},-1-\sqrt{2} | y
more | x_1=2,x_2=3 | 2,3 | y
more | x_1=2,x_2=3 | 3,2 | y
more | a=1,b=2,c=3 | (a,b,c)=(1,2,3) | y
more | a=1,b=2,c=3 | 1,2,3 | y
more | a=1,b=2,c=3 | a=1,b=3,c=2 | n
more | m=3, n=4 | 3,4 | y
more | \frac{d}{2} | \frac{1}{2}d | y
more | 5\text{ or }-5 | \pm5 | y
more | \pm5 | 5\text{ or }-5 | y
more | x = 5 | x = 5.0 | y
more | x = 5 | The solution is x = 5. | y
more | x^2 = 4 | x = \pm 2 | n
more | 2\sqrt{2} | \sqrt{8} | y
more | 2\sqrt{2} | 2.828427 | y
more | 2\sqrt{2} | 2.83 | n
more | \frac{22}{7} | 3.142857 | y
more | 0.125 | \frac18 | y
more | 0.125 | 12.5\% | y
more | \frac{1}{8} | 12.5\% | y
more | 99.9 | 100 | n
more | 1/3 | .333333 | y
more | .5 | 0.5 | y
more | 1. | 1 | y
more | 1, 2 | 1.2 | n
more | 1.2 | 1, 2 | n
more | 14 | 14 \text{ ways} | y
more | 14 | There are 14 ways. | y
more | 14 | There are $14$ ways to do this, so 14. | y
more | 3\sqrt{3}+2 | 2+3\sqrt{3} | y
more | \frac{3+\sqrt{5}}{2} | \frac{\sqrt{5}+3}{2} | y
more | \frac{3+\sqrt{5}}{2} | 2.618033988 | y
more | \frac{3+\sqrt{5}}{2} | \frac{3-\sqrt{5}}{2} | n
more | \phi | \frac{1+\sqrt5}{2} | n
more | 4\text{ hours and }30\text{ minutes} | 4.5\text{ hours} | y
more | 6:00\text{ p.m.} | 6:00 PM | y
more | 6:00\text{ p.m.} | 6 PM | u
more | 2:30 | 2:30 | y
more | 2:30 | 2:30 p.m. | y
more | July 4 | July 4 | y
more | July 4 | July 5 | n
more | \text{2nd} | 2 | y
more | \text{circle with radius } 3 | \text{circle with radius } 3 | y
more | 12x^{3}-4 | 4(3x^3-1) | y
more | 12 x^{3}-4 | 12x^3 - 4 | y
more | \frac{-b\pm\sqrt{b^2-4ac}}{2a} | \frac{-b \pm \sqrt{b^{2}-4 a c}}{2 a} | y
more | c=\sqrt{a^2+b^2} | \sqrt{a^2+b^2} | y
more | A=\pi r^2 | \pi r^2 | y
more | A=\pi r^2 | A = r^2 \pi | y
more | \sum_{i=1}^{n} i | \sum_{i=1}^{n} i | y
more | \sum_{i=1}^{n} i | \frac{n(n+1)}{2} | y
more | \int_0^1 x dx | \frac{1}{2} | u
more | 3 \cdot 2^{n} | 3\cdot2^n | y
more | 3 \cdot 2^{n} | 6^n | n
more | 2^{3n} | 8^n | y
more | \sqrt[4]{16} | 2 | y
more | \sqrt[n]{x} | x^{1/n} | y
more | 5! | 120 | y
more | (2n)! | 2n! | n
more | x(x+1) | x^2+x | y
more | -(x-1) | 1-x | y
more | -3^2 | -9 | y
more | (-3)^2 | 9 | y
more | -3^2 | 9 | n
more | 1-\frac{1}{2^n} | 1 - 2^{-n} | y
more | \frac{1-x}{x-1} | -1 | y
more | 50 \text{ km/h} | 50 \text{ kph} | y
more | 100^\circ\text{C} | 100 | y
more | 100^\circ\text{C} | 100^\circ\text{F} | n
more | \$ 5.00 | 5 | y
more | Rs. 50 | 50 | y
more | 50 | Rs 50 | y
more | ¥100 | 100 | y
more | 100 yuan | 100 | y
more | £20 | 20 | y
more | \text{twelve} | 12 | y
more | 1,2,\ldots,10 | 1,2,\ldots,10 | y
more | \cos^{-1}\frac{1}{3} | \arccos\frac{1}{3} | y
more | \arccos(1/3) | \cos^{-1}(1/3) | y
more | \log_{4}x | \frac{1}{2}\log_2 x | y
more | \frac{5}{6}-\frac{1}{3} | \frac12 | y
more | 20\,000 | 20000 | y
more | 20.000 | 20 | y
more | (3,-4) | 3,-4 | y
more | 3,-4 | (3,-4) | y
more | (4, 3) | (x,y)=(4,3) | y
more | (4, 3) | x=4, y=3 | y
more | (4, 3) | x = 4 and y = 3 | y
more | \frac{\pi}{4}+k\pi, k\in\mathbb{Z} | \frac{\pi}{4}+k\pi | y
more | x=\frac{\pi}{4}+k\pi \ (k\in\mathbb{Z}) | x=\frac{\pi}{4}+k\pi, k \in \mathbb{Z} | y
further | \frac{\pi^2}{6} | \frac{1}{6}\pi^2 | y
further | \sqrt{5}-1 | -1+\sqrt{5} | y
further | 9\frac{3}{8} | 9.375 | y
further | \frac{2}{\sqrt{3}} | \frac{2\sqrt{3}}{3} | y
further | \frac{-1+\sqrt{5}}{2} | \frac{\sqrt{5}-1}{2} | y
further | \left[\frac{1}{2},\infty\right) | [0.5,\infty) | y
further | 1.5 | 1\frac{1}{2} | y
further | 1.5 | 3/2 | y
further | (1,-\frac{1}{2},3) | (1,-0.5,3) | y
further | \{-2,-1,0,1,2\} | \{2,1,0,-1,-2\} | y
further | \frac{13}{4} | 3.25 | y
further | 0.25 | 25\% | y
further | 25\% | \frac{1}{4} | y
further | 5.0\% | 5\% | y
further | 3 hours | 180 minutes | y
further | 3 hours | 3 | y
further | 12 inches | 1 foot | y
further | 1 mile | 5280 feet | y
further | 2 weeks | 14 days | y
further | 1 day | 24 hours | y
further | 500 g | 0.5 kg | y
further | 500 g | 5 kg | n
further | 1000 mL | 1 L | y
further | 1 m^2 | 10000 cm^2 | y
further | 5 m/s | 18 km/h | y
further | 5 \text{ cm}^3 | 5 mL | y
further | (-3, 4] | (-3,4] | y
further | (-3, 4] | [-3,4) | n
further | [1, 2) \cup (3, 4] | (3,4] \cup [1,2) | y
further | x < -2 or x > 2 | (-\infty,-2)\cup(2,\infty) | y
further | -2<x<2 | x \in (-2,2) | y
further | -2<x<2 | |x|<2 | y
further | x=\frac{1}{2}, y=\frac{1}{3} | (\frac12,\frac13) | y
further | (x-2)^2+(y+3)^2=16 | (x-2)^2 + (y+3)^2 = 4^2 | y
further | (x-2)^2+(y+3)^2=16 | x^2+y^2-4x+6y-3=0 | y
further | (x-2)^2+(y+3)^2=16 | (x+2)^2+(y-3)^2=16 | n
further | y=\frac{1}{2}x+3 | x-2y+6=0 | y
further | y=\frac{1}{2}x+3 | 2y=x+6 | y
further | 3x+4y=12 | y=3-\frac34 x | y
further | x=2y | y=\frac{x}{2} | y
further | x=2y | y=2x | n
further | a_n=2n+1 | a_n=2n-1 | n
further | a_n = 3\cdot 2^{n-1} | a_n=\frac{3}{2}\cdot 2^n | y
further | f(x)=x^2-1 | f(x)=(x-1)(x+1) | y
further | f^{-1}(x)=\frac{x-1}{2} | \frac{x-1}{2} | y
further | f(n)=n | g(n)=n | n
further | x^2-4x+4 | (x-2)^2 | y
further | x^2-4x+4 | (x+2)^2 | n
further | (x-1)(x-2)(x-3) | x^3-6x^2+11x-6 | y
further | \frac{x^2+3x+2}{x+1} | x+2 | y
further | \frac{1}{1-x} | -\frac{1}{x-1} | y
further | \frac{a^3-b^3}{a-b} | a^2+ab+b^2 | y
further | \sqrt{a^2} | a | n
further | \sqrt{a^2} | |a| | y
further | 2^{2x} | 4^x | y
further | e^{-x} | \frac{1}{e^x} | y
further | \log_2 32 | 5 | y
further | \log 100 | 2 | y
further | \ln e | 1 | y
further | \log_a b | \frac{\ln b}{\ln a} | y
further | \log_5 7 | \log_7 5 | n
further | \sin^2\theta | 1-\cos^2\theta | y
further | \sin^2\theta | (\sin\theta)^2 | y
further | \cos(-x) | \cos x | y
further | \sin(-x) | \sin x | n
further | \tan 60^\circ | \sqrt{3} | y
further | \sin 75^\circ | \frac{\sqrt6+\sqrt2}{4} | y
further | \cos 15^\circ | \frac{\sqrt6-\sqrt2}{4} | n
further | \sin\frac{\pi}{3} | \frac{\sqrt3}{2} | y
further | \cos\pi | -1 | y
further | \arcsin\frac{1}{2} | 30^\circ | y
further | \arctan\frac{3}{4} | \tan^{-1}\frac34 | y
further | 60^\circ | \frac{\pi}{3} | y
further | \frac{\pi}{3} | 60 | n
further | 1011_2 | 1011 | y
further | 1011_2 | 11 | u
further | 1011_2 | 11_{10} | y
further | \text{B} | \boxed{B} | y
further | \text{B} | \boxed{\text{B. } 12} | y
further | B | b) | y
further | (C) | C | y
further | C | The correct answer is C. | y
further | C | Therefore, the answer is (C) 25. | y
further | C | I choose option C | y
further | C | \boxed{D} | n
further | \text{(A)} | A | y
further | A and B | \text{A, B} | y
further | ABD | A, B, D | y
further | \text{Thursday} | \boxed{Thursday} | y
further | \text{isosceles} | \text{equilateral} | n
further | \text{red} | Red. | y
further | \text{Yes} | yes | y
further | \text{No} | \text{Yes} | n
further | \text{increasing} | increasing | y
further | \text{no solution} | \text{None} | y
further | \text{no solution} | \{1\} | n
further | \text{undefined} | undefined | y
further | \text{tied} | tie | n
further | 3.0\times10^8 | 3\times 10^{8} | y
further | 4.5\times 10^{-5} | 0.000045 | y
further | 4.5\times 10^{-5} | 4.5\times 10^{-4} | n
further | 6.02\times10^{23} | 6.02 \cdot 10^{23} | y
further | 1 \times 10^6 | 10^6 | y
further | 1 million | 1000000 | y
further | 2.5 \text{ million} | 2500000 | y
further | \$1.5 \text{ million} | 1500000 | y
further | 3 thousand | 3000 | y
further | 12:30 | 12:30 | y
further | 2:00 pm | 14:00 | y
further | 9:05 | 9:50 | n
further | 3 : 4 | \frac{3}{4} | y
further | 3 to 4 | 3:4 | y
further | 3:4 | 0.75 | y
further | 3:4 | 4:3 | n
further | \begin{pmatrix}1&0\\0&1\end{pmatrix} | \begin{pmatrix} 1 & 0\\ 0 & 1\\ \end{pmatrix} | y
further | \begin{pmatrix}1&0\\0&1\end{pmatrix} | \begin{pmatrix}0&1\\1&0\end{pmatrix} | n
further | \begin{bmatrix} 1/2 & 0 \end{bmatrix} | \begin{bmatrix} 0.5 & 0 \end{bmatrix} | y
further | \frac{1}{2}\begin{pmatrix}2&4\\6&8\end{pmatrix} | \begin{pmatrix}1&2\\3&4\end{pmatrix} | y
further | 2+\sqrt{3}, 2-\sqrt{3} | 2\pm\sqrt{3} | y
further | 2\pm\sqrt{3} | \{2-\sqrt3, 2+\sqrt3\} | y
further | x=2\pm\sqrt{3} | x_1=2+\sqrt3, x_2=2-\sqrt3 | y
further | \pm\frac{1}{2} | \pm 0.5 | y
further | \pm 1, \pm 2 | -2,-1,1,2 | y
further | x=1 \text{ or } 2 | x=1,x=2 | y
further | x=1 \text{ or } 2 | 1,2 | y
further | (1,2), (2,1) | (2,1) \text{ and } (1,2) | y
further | (0,0) and (1,1) | (0,0),(1,1) | y
further | 3+2i, 3-2i | 3 \pm 2i | y
further | \frac{1+i}{2} | \frac12+\frac12 i | y
further | \frac{1}{1+i} | \frac{1-i}{2} | y
further | i | \sqrt{-1} | y
further | 5i | 5 | n
further | \sqrt[3]{27} | 3 | y
further | \sqrt[3]{54} | 3\sqrt[3]{2} | y
further | 2^{1/3} | \sqrt[3]{2} | y
further | \sqrt{50} | 5\sqrt2 | y
further | \sqrt{50} | 2\sqrt5 | n
further | 3^{-2} | \frac19 | y
further | 16^{3/4} | 8 | y
further | 0.\overline{27} | \frac{3}{11} | y
further | 0.1666... | \frac16 | y
further | \frac{1}{3} | 0.333... | y
further | 7! | 5040 | y
further | \frac{10!}{8!} | 90 | y
further | \binom{6}{3} | 20 | y
further | 2023 | 2{,}023 | y
further | 2,023 | 2023 | y
further | 10000 | 10^4 | y
further | 10,000,000 | 10000000 | y
further | 1000000 | 1,000,00 | n
further | \approx 3.14 | 3.14 | y
further | 3.14 | \approx 3.14 | y
further | about 5 | 5 | y
further | x\approx 2.5 | 2.5 | y
further | 100 | 100 \text{ square meters} | y
further | 100\pi | 100\pi \text{ cm}^2 | y
further | \infty | \text{infinity} | y
further | 6\sqrt{3} \text{ cm} | 6\sqrt{3} | y
further | \text{5 apples} | 5 | y
further | $5$ | 5 | y
further | \(5\) | \boxed{5} | y
interval | [1,3) | 1\le x<3 | y
interval | [1,3) | 1\le x\le 3 | n
interval | (2,\infty) | x>2 | y
interval | (2,\infty) | x\ge 2 | n
interval | (2,\infty) | 2x>4 | u
interval | (-\infty,1)\cup(2,\infty) | x<1 \text{ or } x>2 | y
interval | (-\infty,1)\cup(2,\infty) | x<1 \text{ or } x\ge 2 | n
extraction | 72 | So \boxed{71}. Wait, \boxed{72} | y
extraction | 71 | So \boxed{71}. Wait, \boxed{72} | n
extraction | 72 | \boxed{70} was the first guess. However, $\boxed{72}$ | y
extraction | 0.5 | First \boxed{\frac12}. In decimals, \boxed{0.5} | y
extraction | 1,2 | $\boxed{1}$, \text{ and } $\boxed{2}$ | y
extraction | 9 | There are **9** ways | y
extraction | 36 | It takes 36 minutes. | y
extraction | 72 | the answer is 72 apples, out of 100 | y
extraction | 100 | the answer is 72 apples, out of 100 | n
extraction | 5 | I do not know | u
extraction | 5 | I cannot solve this problem. | u
words | 5 | unknown | u
words | Tuesday | I do not know | u
words | -3 | negative three | y
words | 3 | negative three | n
words | -3 | minus 3 | y
words | -3 | negative 3 | y
words | 25 | twenty-five | y
words | 25 | twenty-six | n
words | 105 | one hundred and five | y
words | 1250 | one thousand two hundred fifty | y
words | \frac{2}{3} | two thirds | y
words | \frac{2}{3} | three halves | n
words | 3.5 | three and a half | y
words | 25 | twenty-five apples | y
words | 1/4 | a quarter | y
words | 0 | none | u
words | 0 | zero | y
words | 5 | none | n
words | negative | positive | n
choice | A | a cat | u
words | ABC | CBA | u
words | AB | BA | y
base | 5_8 | 5 | y
base | 1010_2 | 10 | u
modular | 7 \mod 3 | 1 | y
modular | 7 \mod 3 | 2 | n
further | \sum_{k=1}^{10} k | 55 | y
further | \sum_{k=1}^{10} k | 54 | n
further | \prod_{k=1}^{5} k | 120 | y
further | \sum_{k=0}^{3} 2^k | 15 | y
notation | 12\text{ hours} | 12 | y
notation | \$18.90 | \$18.09 | n
notation | 18.90 dollars | $18.90 | y
notation | 3\frac{1}{2} | \frac{7}{2} | y
notation | 3\frac{1}{2} | 3.5 | y
notation | \frac{-1}{2} | -0.5 | y
notation | x=\frac{3}{4} | 0.75 | y
notation | p - q | -q + p | y
notation | \sqrt{12} | 2\sqrt{3} | y
notation | \frac{1}{\sqrt{2}} | \frac{\sqrt{2}}{2} | y
notation | (3, \frac{\pi}{2}) | \left( 3, \frac{\pi}{2} \right) | y
notation | (3, \frac{\pi}{2}) | (3, \frac{\pi}{3}) | n
notation | \left\{-2, 3\right\} | x=-2 \text{ or } x=3 | y
notation | -2, 3 | 3, -2 | y
notation | x_1=2, x_2=5 | 2, 5 | y
notation | x_1=2, x_2=5 | x=5 \text{ or } x=2 | y
notation | \begin{pmatrix} 1 \\ 2 \end{pmatrix} | \begin{bmatrix} 1 \\ 2 \end{bmatrix} | y
notation | \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} | \begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix} | n
notation | 073 | 73 | y
notation | 073 | 37 | n
notation | \textbf{(C)}\ 12 | C | y
notation | \textbf{(C)}\ 12 | 12 | y
notation | \textbf{(C)}\ 12 | (D) | n
notation | \text{(C)} | The answer is C | y
notation | \mathrm{(E)}\ \frac{1}{2} | \frac12 | y
notation | 60^\circ | 60 | y
notation | 60^{\circ} | \frac{\pi}{3} | y
notation | 2^{2023} | 2 \cdot 2^{2022} | y
notation | n(n+1)/2 | \frac{n^2+n}{2} | y
notation | \frac{n(n+1)}{2} | n(n-1)/2 | n
notation | a_n = 2n+1 | 2n+1 | y
notation | f(x) = x^2 - 1 | (x-1)(x+1) | y
notation | y = 2x + 3 | 2x - y + 3 = 0 | y
notation | y = 2x + 3 | y - 2x = 3 | y
notation | y = 2x + 3 | y = 2x - 3 | n
notation | x^2 + y^2 = 4 | \frac{x^2}{4} + \frac{y^2}{4} = 1 | y
notation | 1:2 | 2:4 | y
notation | 3:4 | \frac{3}{4} | y
notation | 5 \times 10^{-3} | 0.005 | y
notation | 1.2\times10^4 | 12000 | y
notation | \ln e^2 | 2 | y
notation | 2\pi r | 2r\pi | y
notation | (x+1)(x-2)^2 | (x-2)^2(x+1) | y
notation | 1+\sqrt{2}, 1-\sqrt{2} | 1\pm\sqrt2 | y
notation | (-\infty, 0] \cup [1, +\infty) | (-\infty,0]\cup[1,\infty) | y
notation | k \in (-1, 1) | -1 < k < 1 | y
notation | m > 1 | (1, +\infty) | y
notation | a \leq -2 | (-\infty, -2] | y
notation | \{x \mid -1 \le x < 2\} | [-1, 2) | y
notation | \{1, 2, 3\} | 1, 2, 3 | y
notation | \varnothing | \emptyset | y
notation | 7\text{ cm}^2 | 7 | y
notation | 2{,}500 | 2500 | y
notation | 540 meters | The total distance is 540 meters. | y
notation | 70000 | \$70,000 | y
notation | 10 | She has **10** eggs left. | y
notation | 10 | Therefore, she has 10 eggs left. | y
notation | 10 | #### 10 | y
notation | 10 | The final answer is: $\boxed{10}$. I hope it is correct. | y
notation | \frac{3}{8} | 3 out of 8 | u
notation | 24 | 24 different ways | y
notation | n=2 | The only solution is $n = 2$. | y
notation | \text{all } n \ge 2 | n \geq 2 | y
notation | (2,3),(3,2) | (3,2),(2,3) | y
notation | (2,3),(3,2) | (2,3) | n
notation | (a,b)=(1,2) | a=1,b=2 | y
notation | \frac{\sqrt{3}}{3}\pi | \frac{\pi}{\sqrt{3}} | y
notation | 5050 | \frac{100\cdot 101}{2} | y
notation | |x| | \sqrt{x^2} | y
notation | 6.0 | 6 | y
notation | 1/3 | 0.333 | n
notation | 1/3 | 0.3333333 | y
notation | 11\frac{1}{9}\% | \frac{1}{9} | y
notation | 2:30 p.m. | 2:30 PM | y
notation | 2:30 p.m. | 14:30 | y
notation | AB = 5 | 5 | y
notation | S_n = n^2 | n^{2} | y
notation | \frac{25}{4}\text{ or }6.25 | 6.25 | y
notation | 8! | 40320 | y
notation | C_5^2 | 10 | y
notation | \binom{5}{2} | 10 | y
notation | {10}^{6} | 1000000 | y
notation | x \ne 0 | x \neq 0 | y
notation | 4 \sqrt 2 | 4\sqrt{2} | y
notation | \dfrac{1}{2}\ln 2 | \ln\sqrt{2} | y
notation | \overline{abc} | abc | y
notation | 25 \pi \text{ square inches} | 25\pi | y
notation | 99_{10} | 99 | y
notation | y=\pm\frac{1}{2}x | y=\pm \frac{x}{2} | y
notation | 5\sqrt{2} \mathrm{~cm} | 5\sqrt{2} | y
notation | 40 \mathrm{~km} / \mathrm{h} | 40 | y
notation | 2 \frac{1}{4} | 2.25 | y
notation | 1, 3, 5 | \{1,3,5\} | y
notation | [0, 1] | 0 \leq x \leq 1 | y
notation | 1010_2 | 1010 | y
notation | three | 3 | y
notation | 3 | three apples | y
notation | 1/2 | one half | y
notation | \text{Monday} | monday | y
notation | \text{False} | false | y
notation | B, D | BD | y
notation | ABD | A, B and D | y
notation | \frac{\pi^2}{6} | \pi^2/6 | y
notation | C_{5}^{2} | 10 | y
notation | x \in \{1, 2\} | x = 1, 2 | y
notation | x=1 \text{ and } x=2 | \{1,2\} | y
notation | k = 2n, n \in \mathbb{Z} | 2n | y
notation | \frac{1}{2} \text{ or } 2 | 2, \frac12 | y
notation | 0.\overline{3} | 1/3 | y
notation | 0.333... | 1/3 | y
notation | 0.333… | 1/3 | y
notation | -\infty < x < 2 | (-\infty,2) | y
notation | x>2, y<3 | y<3, x>2 | y
notation | (0,0), (1, 1) | \{(0,0),(1,1)\} | y
notation | (-\infty, -1] \cup [3, \infty) | x \le -1 \text{ or } x \ge 3 | y
notation | (-\infty, -1] \cup [3, \infty) | x \leq -1, x \geq 3 | y
notation | [-2, 2] | -2 \le x \text{ and } x \le 2 | y
notation | [-2, 2] | |x| \le 2 | u
notation | \sum_{n=1}^{5} n^2 | 55 | y
notation | \sum_{k=1}^{4} \frac{1}{k} | \frac{25}{12} | y
notation | \sum_{k=1}^{10} (2k-1) | 100 | y
notation | \prod_{k=2}^{4} \left(1-\frac{1}{k}\right) | \frac14 | y
notation | \sum_{k=1}^{1000000000} k | 5 | u
notation | 1 + \sum_{k=1}^{3} k | 7 | y
notation | 17 \bmod 5 | 2 | y
notation | 2 \pmod 5 | 2 | y
notation | eighty-one | 81 | y
notation | 81 | eighty one | y
notation | 81 | eighteen | n
notation | 1000000 | one million | y
notation | 2500 | two thousand five hundred | y
notation | 2500 | twenty-five hundred | y
notation | 0.5 | half | y
notation | 0.5 | one-half | y
notation | 3/4 | three quarters | y
notation | 3/4 | three-fourths | y
notation | 12 | a dozen | y
notation | 12 | There are twelve ways. | y
notation | 7 | seven days | y
notation | 7 | the answer is seven | y
notation | 7 | the answer is eight | n
notation | 7 | I'm not sure | u
notation | 7 | Not enough information | u
notation | 7 | cannot be determined | u
notation | \text{cannot be determined} | cannot be determined | y
notation | 36 | It took her 36 minutes to finish. | y
notation | 36 | She needs $36 more. | y
notation | 36 | John has 36 apples. | y
notation | 1.5 | It takes 1.5 hours. | y
notation | 5 | She bought 3 pens and 5 pencils | y
notation | 5 | He has 12 - 7 = 5 apples left | y
notation | 15 | The answer is 15, which is the sum of 7 and 8. | y
notation | 15 | **15** | y
notation | 15 | The answer is **15**. | y
notation | 15 | **Answer: 15** | y
notation | 15 | Final answer: **$15$** | y
notation | 2**3 | 8 | y
notation | (1,2) | x = \boxed{1}, y = \boxed{2} | y
notation | 1,2 | $\boxed{1}$ or $\boxed{2}$ | y
notation | 1,2 | \boxed{1 \text{ or } 2} | y
notation | 5 | \boxed{4}; correction: \boxed{5} | y
notation | 5 | \boxed{4}, so finally \boxed{5} | y
notation | 72 | \boxed{72}. Check: 72 = 8*9. | y
notation | negative | negative | y
notation | -5 | negative five | y
notation | ABCD | DCBA | u
notation | XY | YX | y
notation | a+b | b+a | y
notation | A | a dog | u
notation | (A) | (B) | n
notation | 11:00 | 11:00 AM | y
notation | 1 hour 30 minutes | 90 minutes | y
notation | 90 | 1 hour 30 minutes | y
notation | 3 | 3rd | y
notation | 21 | twenty-first | u
notation | 10 | 10 or 12 | n
notation | 5 | approximately 5 | y
notation | \frac{22}{7} | 3.14 | n
notation | (2\sqrt{3}, 4) | (\sqrt{12}, 4) | y
notation | 6+9i | 3(2+3i) | y
notation | \text{Yes, } x=2 | yes | u
"""


def pairs():
    for line in PAIRS.strip("\n").split("\n"):
        kind, rest = line.split(" | ", 1)
        body, label = rest.rsplit(" | ", 1)
        body = " " + body + " "
        # " | " separates the fields. The bar of an absolute value has a space on one side at most.
        gold, prediction = body.split(" | ", 1) if body.count(" | ") == 1 else body.split(" | ")[:2]
        yield kind, gold.strip(), prediction.strip(), {"y": "yes", "n": "no", "u": "unknown"}[label]
